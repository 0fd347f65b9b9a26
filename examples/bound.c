/* How fast could a model run on a system that the database knows?
 *
 *     cc bound.c -o bound $(pkg-config --cflags --libs benanza)
 *     ./bound resnet50.onnx epyc-9xx5 */
#include <benanza/benanza.h>
#include <math.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "bound MODEL [SYSTEM]\n");
        return 2;
    }
    benanza_error error = {0};
    benanza_db *db = benanza_open(NULL, &error); /* $BENANZA_DB, or the usual one */
    const benanza_request request = {.model = argv[1], .system = argv[2], .fuse = true};
    benanza_analysis *a = db ? benanza_analyze(db, &request, &error) : NULL;
    if (a) {
        double goal = benanza_number(a, "goal");
        if (isnan(goal))
            printf("too little is priced: %.1f %% of the multiplications\n", 100 * benanza_number(a, "priced_macs"));
        else
            printf("%.3f ms; the peaks of the hardware allow %.3f ms\n", 1e3 * goal,
                   1e3 * benanza_number(a, "hardware"));
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    benanza_free(a);
    benanza_close(db);
    return a ? 0 : 1;
}
