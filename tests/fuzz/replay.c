/* Stands in for libFuzzer where the compiler has none: runs the target on every file of the folders
 * that are named, so that what the fuzzer once found stays found. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        return -1;
    long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    int rc = data && size >= 0 && fread(data, 1, (size_t)size, f) == (size_t)size ? 0 : -1;
    if (!rc)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    fclose(f);
    return rc;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        for (struct dirent *e; dir && (e = readdir(dir));) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            if (e->d_name[0] != '.' && !run_file(path))
                n++;
        }
        if (dir)
            closedir(dir);
    }
    printf("%d inputs\n", n);
    return n ? 0 : 1;
}
