/* Stands in for libFuzzer where there is none: runs the target over files and folders of files. */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st)) {
        perror(path);
        return -1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size + 1);
    int failed = !data || fread(data, 1, size, f) != size;
    fclose(f);
    if (!failed)
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return failed ? -1 : 0;
}

static int run_folder(const char *path, int *n)
{
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    int failed = 0;
    for (struct dirent *e; (e = readdir(folder));) {
        char file[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        failed |= run_file(file);
        ++*n;
    }
    closedir(folder);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0, n = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st)) {
            perror(argv[i]);
            return 1;
        }
        if (S_ISDIR(st.st_mode))
            failed |= run_folder(argv[i], &n);
        else {
            failed |= run_file(argv[i]);
            n++;
        }
    }
    printf("%d inputs\n", n);
    return failed || n == 0;
}
