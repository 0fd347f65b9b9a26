/* fleet.json: whatever is taken makes a batch script that a shell finds nothing to complain about. */
#include "fleet/fleet.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Outside of quotes only what the generator itself writes may stand; a quote that stays open swallows the rest. */
static void check_quotes(const char *text)
{
    bool open = false;
    for (const char *p = text; *p; p++)
        if (*p == '\'' && (open || p == text || p[-1] != '\\'))
            open = !open;
    if (open)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_fleet fleet;
    bz_error err;
    char *text = bz_alloc(size + 1, 1);
    memcpy(text, data, size);
    text[size] = 0;
    if (!bz_fleet_parse(text, "fuzz", &fleet, &err)) {
        for (int i = 0; i < fleet.n_systems; i++) {
            const bz_fleet_system *s = &fleet.system[i];
            bz_fleet_names argv = {BZ_NEW(&fleet.arena, const char *, 24 + s->options.n), 0};
            bz_buf script = {0};
            bz_slurm_script(s, fleet.benanza ? fleet.benanza : "benanza", s->name, 1, &script);
            SAW(script.data, script.len);
            for (const char *p = bz_buf_text(&script); *p; p++)
                if (*p == '\r' || *p == '\033')
                    abort();
            bz_slurm_options(s, &fleet.arena, &argv);
            for (int k = 0; k < argv.n; k++)
                SAW(argv.item[k], strlen(argv.item[k]));
            if (!bz_fleet_is_name(s->name) || strchr(s->name, '/') || argv.n > 24 + s->options.n)
                abort();
            bz_buf quoted = {0};
            bz_slurm_quote(&quoted, s->scratch ? s->scratch : "it's");
            check_quotes(bz_buf_text(&quoted));
            bz_buf_free(&quoted);
            bz_buf_free(&script);
        }
    }
    bz_fleet_free(&fleet);
    free(text);
    return 0;
}
