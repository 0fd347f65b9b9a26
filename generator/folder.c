/* The folder that sources go into. Its file .benanza lists what we wrote there, each with the hash of its content: that is
 * all that a later generation may remove. What is not on the list, or was changed since, is somebody else's. */

#include "generator/plan.h"

#include "base/map.h"
#include "base/whole.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MARK[] = ".benanza", HEAD[] = "benanza wrote these files\n";
enum { LONGEST_MARK = 64 << 20, HASH = 32, LONGEST_NAME = 255 };

/* A file of the folder, not through a link; false where there is none, or it is longer than any of ours. */
static bool read_file(int folder, const char *name, bz_buf *out)
{
    struct stat st;
    bz_buf_clear(out);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool good = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= LONGEST_MARK;
    for (ssize_t n = 1; good && n > 0;) {
        char some[1 << 16];
        while ((n = read(fd, some, sizeof some)) < 0 && errno == EINTR)
            ;
        good = n >= 0;
        if (n > 0)
            bz_buf_put(out, some, (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    return good;
}

/* One line of the mark: a hash, or as many minuses for a large file of numbers; a space; a name in this folder. */
static bool next_file(char **line, char hash[HASH + 1], const char **name)
{
    char *end = strchr(*line, '\n');
    if (!end || end - *line < HASH + 2 || (*line)[HASH] != ' ')
        return false;
    *end = 0;
    memcpy(hash, *line, HASH);
    hash[HASH] = 0;
    *name = *line + HASH + 1;
    *line = end + 1;
    return (*name)[0] != '.' && !strchr(*name, '/') && strlen(*name) <= LONGEST_NAME;
}

static bool is_unchanged(int folder, const char *name, const char *hash, bz_buf *text)
{
    char now[HASH + 1];
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT;
    if (strspn(hash, "-") == HASH)
        return S_ISREG(st.st_mode) && !strcmp(name, BZ_GENERATED_WEIGHTS);
    if (!read_file(folder, name, text))
        return false;
    bz_hash_hex(bz_hash_bytes(text->data, text->len), now);
    return !strcmp(now, hash);
}

/* With `remove`, takes the files away; without, only looks whether all of them may be. */
static int each_of_ours(int fd, const char *folder, const bz_buf *mark, bool remove, bz_error *err)
{
    BZ_SCOPED(bz_buf) lines = {0}, text = {0};
    bz_buf_puts(&lines, mark->data + strlen(HEAD));
    char *line = lines.data, hash[HASH + 1];
    const char *name;
    int rc = 0;
    while (!rc && line && *line) {
        if (!next_file(&line, hash, &name))
            rc = bz_fail(err, BZ_USAGE, "%s: its list of generated files is damaged: name an empty or a new folder",
                         folder);
        else if (remove)
            unlinkat(fd, name, 0);
        else if (!is_unchanged(fd, name, hash, &text))
            rc = bz_fail(err, BZ_USAGE,
                         "%s/%s: was changed after it was generated: name another folder, or remove the file", folder,
                         name);
    }
    return rc;
}

static bool is_empty(int fd)
{
    bool empty = true;
    DIR *d = fdopendir(dup(fd));
    for (struct dirent *e; d && empty && (e = readdir(d));)
        empty = e->d_name[0] == '.';
    if (d)
        closedir(d);
    return empty;
}

static int start_mark(int fd, const char *folder, bz_error *err)
{
    unlinkat(fd, MARK, 0);
    int mark = openat(fd, MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool bad = mark < 0 || !bz_write_all(mark, HEAD, strlen(HEAD));
    if (mark >= 0)
        close(mark);
    return bad ? bz_fail(err, BZ_FAILED, "%s/%s: cannot be written: %s", folder, MARK, strerror(errno)) : 0;
}

int bz_generate_folder(const char *folder, bz_error *err)
{
    BZ_SCOPED(bz_buf) mark = {0};
    if (mkdir(folder, 0777) && errno != EEXIST)
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", folder, strerror(errno));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
    if (fd < 0)
        return bz_fail(err, BZ_FAILED, "%s: cannot be read: %s", folder, strerror(errno));
    bool ours = read_file(fd, MARK, &mark) && mark.len >= strlen(HEAD) && !memcmp(mark.data, HEAD, strlen(HEAD));
    if (ours)
        rc = each_of_ours(fd, folder, &mark, false, err) || each_of_ours(fd, folder, &mark, true, err) ? -1 : 0;
    else
        rc = is_empty(fd) ? 0
                          : bz_fail(err, BZ_USAGE,
                                    "%s: holds other things than benchmarks; name an empty or a new folder", folder);
    if (!rc)
        rc = start_mark(fd, folder, err);
    close(fd);
    return rc;
}

/* The list comes first: whoever is killed in between leaves a name without a file, and not a file without a name. */
static int add_to_mark(const char *folder, const char *name, const char *hash, bz_error *err)
{
    char path[4200];
    BZ_SCOPED(bz_buf) line = {0};
    if (snprintf(path, sizeof path, "%s/%s", folder, MARK) >= (int)sizeof path)
        return bz_fail(err, BZ_FAILED, "%s: the path is too long", folder);
    bz_buf_printf(&line, "%s %s\n", hash, name);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    bool bad = fd < 0 || !bz_write_all(fd, line.data, line.len);
    if (fd >= 0)
        close(fd);
    return bad ? bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno)) : 0;
}

/* A link or a file that lies there already is not ours. */
static int open_new(const char *folder, const char *name, const char *hash, bz_error *err)
{
    char path[4200];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return bz_fail(err, BZ_FAILED, "%s: the path is too long", folder);
    struct stat st;
    if (!lstat(path, &st))
        return bz_fail(err, BZ_USAGE, "%s: is not ours to replace: name an empty or a new folder", path);
    if (add_to_mark(folder, name, hash, err))
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd >= 0 ? fd : bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

int bz_generate_weights(const char *folder, bz_error *err)
{
    return open_new(folder, BZ_GENERATED_WEIGHTS, "--------------------------------", err);
}

int bz_generate_file(const char *folder, const char *name, const bz_buf *text, bz_error *err)
{
    char hash[HASH + 1];
    bz_hash_hex(bz_hash_bytes(bz_buf_text(text), text->len), hash);
    int fd = open_new(folder, name, hash, err);
    if (fd < 0)
        return -1;
    bool bad = !bz_write_all(fd, text->data, text->len);
    bad |= close(fd) != 0;
    return bad ? bz_fail(err, BZ_FAILED, "%s/%s: cannot be written: %s", folder, name, strerror(errno)) : 0;
}
