#include "runtime/kept.h"
#include "base/sort.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/whole.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* "benanza kept 1", the key's length, the data's length and the data's hash, on one line; then key and data. */
#define HEAD "benanza kept 1 %zu %zu %32[0-9a-f]%n"

enum { HEAD_MOST = 128, FILE_MOST = 64 << 20, PATH_MOST = 4096 };

static bool path_of(const char *folder, const char *key, char out[PATH_MOST])
{
    char hex[33];
    bz_hash_hex(bz_hash_bytes(key, strlen(key)), hex);
    return snprintf(out, PATH_MOST, "%s/%s.kept", folder, hex) < PATH_MOST;
}

static bool is_own(const struct stat *s)
{
    return s->st_uid == geteuid() && !(s->st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_own_folder(const char *folder)
{
    struct stat s;
    return !stat(folder, &s) && S_ISDIR(s.st_mode) && is_own(&s);
}

/* The file that is open is the one that was looked at. */
static bool read_own(const char *path, bz_buf *out)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool good = fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && is_own(&s) && s.st_size <= FILE_MOST;
    size_t size = good ? (size_t)s.st_size : 0, got = 0;
    char *to = good ? bz_buf_extend(out, size) : NULL;
    for (ssize_t n = 1; good && got < size && n > 0; got += n > 0 ? (size_t)n : 0)
        n = read(fd, to + got, size - got);
    if (fd >= 0)
        close(fd);
    return good && got == size;
}

bool bz_kept_read(const bz_buf *text, const char *key, const char **data, size_t *size)
{
    char head[HEAD_MOST], hash[33], real[33];
    size_t n_key, n_data;
    int at = 0;
    snprintf(head, sizeof head, "%.*s", (int)(text->len < sizeof head ? text->len : sizeof head - 1),
             bz_buf_text(text));
    if (sscanf(head, HEAD, &n_key, &n_data, hash, &at) != 3 || head[at] != '\n')
        return false;
    size_t left = text->len - (size_t)at - 1;
    if (n_key != strlen(key) || n_key > left || n_data != left - n_key || memcmp(text->data + at + 1, key, n_key) != 0)
        return false;
    *data = text->data + at + 1 + n_key;
    *size = n_data;
    bz_hash_hex(bz_hash_bytes(*data, *size), real);
    return !strcmp(real, hash);
}

bool bz_kept_take(const char *folder, const char *key, bz_buf *out)
{
    char path[PATH_MOST];
    const char *data;
    size_t size;
    BZ_SCOPED(bz_buf) text = {0};
    bool found = path_of(folder, key, path) && is_own_folder(folder) && read_own(path, &text) &&
                 bz_kept_read(&text, key, &data, &size);
    if (found)
        bz_buf_put(out, data, size);
    return found;
}

void bz_kept_put(const char *folder, const char *key, const void *data, size_t size)
{
    char path[PATH_MOST], hex[33];
    BZ_SCOPED(bz_buf) text = {0};
    bz_error err;
    mkdir(folder, 0700);
    if (size > FILE_MOST - HEAD_MOST - strlen(key) || !path_of(folder, key, path) || !is_own_folder(folder))
        return;
    bz_hash_hex(bz_hash_bytes(data, size), hex);
    bz_buf_printf(&text, "benanza kept 1 %zu %zu %s\n%s", strlen(key), size, hex, key);
    bz_buf_put(&text, data, size);
    mode_t before = umask(077);
    bz_whole_write(path, &text, &err);
    umask(before);
}

typedef struct entry {
    struct timespec made;
    double bytes;
    char name[48];
} entry;

BZ_SORTS(compare_age, entry,
         BZ_THEN(BZ_ORDER(p->made.tv_sec, q->made.tv_sec), BZ_ORDER(p->made.tv_nsec, q->made.tv_nsec)));

void bz_kept_trim(const char *folder, double most)
{
    BZ_FREED entry *list = NULL;
    int n = 0;
    double all = 0;
    struct stat s;
    DIR *d = is_own_folder(folder) ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t length = strlen(e->d_name);
        if (length != 37 || strcmp(e->d_name + 32, ".kept") != 0 ||
            fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode))
            continue;
        BZ_ROOM(list, n);
        list[n] = (entry){.made = s.st_mtim, .bytes = (double)s.st_size};
        memcpy(list[n].name, e->d_name, length + 1);
        all += list[n++].bytes;
    }
    BZ_QSORT(list, n, compare_age);
    for (int i = 0; i < n && all > most; i++) {
        unlinkat(dirfd(d), list[i].name, 0);
        all -= list[i].bytes;
    }
    if (d)
        closedir(d);
}
