#include "onnx/file.h"

#include "base/folder.h"
#include "onnx/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What people take for a model by accident: how it begins, and what to tell them. `at`: these bytes stand behind a length
 * or an offset of so many bytes, whose upper half is zero; no model has two zeros there. */
static const struct {
    size_t at;
    const char *begin, *hint;
} MISTAKEN[] = {
    {0, "<", "this is an HTML or XML page (a download that went wrong?), not an ONNX model"},
    {0, "version https://git-lfs", "this is a Git LFS pointer, not the model: run git lfs pull"},
    {0, "PK\003\004",
     "this is a zip archive (a PyTorch checkpoint?), not an ONNX model: export it to ONNX, or unpack it"},
    {0, "\037\213", "this is a gzip file: unpack it first; a recording goes to 'benanza analyze --profile'"},
    {0, "{", "this is JSON, not an ONNX model; a recording goes to 'benanza analyze --profile'"},
    {0, "[", "this is JSON, not an ONNX model; a recording goes to 'benanza analyze --profile'"},
    {0, "ir_version:", "this is an ONNX model in text form: convert it to the binary form first"},
    {0, "\200\002", "this is a Python pickle, not an ONNX model: export it to ONNX"},
    {0, "\200\003", "this is a Python pickle, not an ONNX model: export it to ONNX"},
    {0, "\200\004", "this is a Python pickle, not an ONNX model: export it to ONNX"},
    {0, "\200\005", "this is a Python pickle, not an ONNX model: export it to ONNX"},
    {0, "\050\265\057\375", "this is a zstd file: unpack it first; a recording goes to 'benanza analyze --profile'"},
    {0, "SQLite format 3", "this is a database of SQLite: a recording goes to 'benanza analyze --profile'"},
    {0, "GGUF", "this is a GGUF file, which holds weights but no graph: export the model to ONNX where it was trained"},
    {0, "\211HDF", "this is an HDF5 file (Keras?), not an ONNX model: tf2onnx converts it"},
    {0, "\223NUMPY", "this is an array of NumPy, not an ONNX model"},
    {4, "TFL3", "this is a TensorFlow Lite model: tf2onnx --tflite converts it"},
    {4, "ORTM", "this is a model in ONNX Runtime's own format: take the .onnx file that it was made of"},
    {8, "{\"", "this is a safetensors file, which holds weights but no graph: export the model to ONNX"},
};

static int check_beginning(const uint8_t *data, size_t size, bz_error *err)
{
    /* Text may begin with a byte order mark and white space, neither of which begins a model. */
    size_t skip = size >= 3 && !memcmp(data, "\357\273\277", 3) ? 3 : 0;
    while (skip < size && data[skip] && strchr(" \t\r\n", data[skip]))
        skip++;
    for (size_t i = 0; i < sizeof MISTAKEN / sizeof *MISTAKEN; i++) {
        size_t n = strlen(MISTAKEN[i].begin), at = MISTAKEN[i].at;
        if (at && (size < at || data[at - 1] || data[at - 2]))
            continue;
        if (!at)
            at = skip;
        if (size >= at + n && !memcmp(data + at, MISTAKEN[i].begin, n))
            return bz_fail(err, BZ_BAD_INPUT, "%s", MISTAKEN[i].hint);
    }
    return 0;
}

/* The folder is kept open: a path could be swapped for another between two looks. */
static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    BZ_SCOPED(bz_buf) folder = {0};
    if (slash)
        bz_buf_put(&folder, path, (size_t)(slash - path) + 1);
    else
        bz_buf_puts(&folder, ".");
    return open(bz_buf_text(&folder), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Payloads of more than a kilobyte (WIRE_SMALL) are hardly ever looked at, and shorter ones cost less to read than to
 * pass. A file that is small altogether is read whole, which is faster. */
static int read_bytes(int fd, bz_model_file *file, bz_error *err)
{
    enum { SMALL = 512 << 10, BEGINNING = 64 << 10 }; /* where all nodes of many a model lie */
    size_t size = file->size <= SMALL ? (size_t)file->size : BEGINNING;
    bz_buf read = {0};
    ssize_t n = pread(fd, bz_buf_extend(&read, size), size, 0);
    read.len = n > 0 ? (size_t)n : 0; /* somebody may be writing it */
    file->bytes = (wire_bytes){.data = (const uint8_t *)read.data, .size = read.len};
    if (n < 0)
        return bz_fail(err, BZ_BAD_INPUT, "cannot be read: %s", strerror(errno));
    if (check_beginning(file->bytes.data, file->bytes.size, err))
        return -1;
    return file->size <= SMALL ? 0 : structure_read(fd, file->size, WIRE_SMALL, &read, &file->bytes, err);
}

static int read_file(int fd, bz_model_file *file, bz_error *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return bz_fail(err, BZ_BAD_INPUT, "cannot be read: %s", strerror(errno));
    if (S_ISDIR(st.st_mode))
        return bz_fail(err, BZ_BAD_INPUT, "is a folder: name the .onnx file in it");
    if (!S_ISREG(st.st_mode))
        return bz_fail(err, BZ_BAD_INPUT, "is not a regular file: save the model to disk first");
    if (!st.st_size)
        return bz_fail(err, BZ_BAD_INPUT, "the file is empty");
    file->size = (uint64_t)st.st_size;
    file->owned = true;
    return read_bytes(fd, file, err);
}

/* When a file was read last is written down at each read, which makes short ones a quarter longer; only its
 * owner may do without. */
static int open_quietly(const char *path)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, fd = open(path, flags | O_NOATIME);
    return fd < 0 && errno == EPERM ? open(path, flags) : fd;
}

int file_open(const char *path, bz_model_file *file, bz_error *err)
{
    int fd = open_quietly(path);
    if (fd < 0)
        return bz_path_fail(path, "cannot be opened", errno, err);
    *file = (bz_model_file){.path = path, .folder = -1};
    int failed = read_file(fd, file, err);
    if (file->bytes.n_cuts)
        file->bytes.fd = fd; /* whoever wants a payload reads it */
    else
        close(fd);
    if (!failed)
        return 0;
    file_close(file);
    return bz_fail_in(err, "%s", path);
}

void file_close(bz_model_file *file)
{
    if (file->folder >= 0)
        close(file->folder);
    if (file->external && file->external_fd >= 0)
        close(file->external_fd);
    file->folder = -1;
    file->external = NULL;
    if (!file->owned)
        return;
    if (file->bytes.n_cuts)
        close(file->bytes.fd);
    free((void *)file->bytes.data);
    free((void *)file->bytes.cuts);
    file->bytes = (wire_bytes){0};
}

/* Component by component with O_NOFOLLOW: neither "..", nor a link, nor a race leads outside. */
static int open_external(const bz_model_file *file, const char *path, bz_error *err)
{
    if (path[0] == '/')
        return bz_fail(err, BZ_BAD_INPUT, "external data '%s' is an absolute path: it must lie beside the model", path);
    for (const char *p = path; *p; p += strcspn(p, "/"), p += strspn(p, "/"))
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
            return bz_fail(err, BZ_BAD_INPUT, "external data '%s' leaves the model's folder: that is not allowed",
                           path);
    if (file->folder < 0 || !*path)
        return -2;
    int at = dup(file->folder);
    for (const char *p = path; at >= 0 && *p;) {
        char part[256];
        size_t n = strcspn(p, "/");
        if (n >= sizeof part) {
            close(at);
            return -2;
        }
        memcpy(part, p, n);
        part[n] = 0;
        p += n;
        p += strspn(p, "/");
        int next = openat(at, part, O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (*p ? O_PATH | O_DIRECTORY : O_RDONLY));
        int why = errno;
        struct stat st;
        bool link = next < 0 && !fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode);
        close(at);
        if (link)
            return bz_fail(
                err, BZ_BAD_INPUT,
                "external data '%s' goes through a link: that is not allowed, put the file itself beside the model",
                path);
        if (next < 0 && why != ENOENT && why != ENOTDIR && why != EACCES)
            return bz_fail(err, BZ_BAD_INPUT, "external data '%s' cannot be opened: %s", path, strerror(why));
        at = next;
    }
    struct stat st;
    if (at >= 0 && (fstat(at, &st) || !S_ISREG(st.st_mode))) {
        close(at);
        return bz_fail(err, BZ_BAD_INPUT, "external data '%s' is not a regular file", path);
    }
    return at >= 0 ? at : -2;
}

int file_external(bz_model_file *file, const char *path, bz_error *err)
{
    if (file->external && !strcmp(path, file->external))
        return file->external_fd;
    if (file->path && file->folder < 0)
        file->folder = open_folder(file->path);
    int fd = open_external(file, path, err);
    if (fd == -1)
        return -1;
    if (file->external && file->external_fd >= 0)
        close(file->external_fd);
    file->external = path;
    file->external_fd = fd;
    return fd;
}
