/* What a system's details say of the machine itself, whoever wrote them. They may come from a stranger's file. */
#include "perfdb/perfdb.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const cJSON *root, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, name));
}

static double number(const cJSON *root, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, name);
    return cJSON_IsNumber(v) && v->valuedouble > 0 && v->valuedouble < 1e30 ? v->valuedouble : 0;
}

void bz_system_facts_read(const char *details, bz_arena *arena, bz_system_facts *out)
{
    cJSON *root = details && *details ? cJSON_Parse(details) : NULL;
    const char *imported = word(root, "gpu"), *device = word(root, "device"), *name = word(root, "name");
    const char *capability = word(root, "capability"), *isa = word(root, "isa");
    *out = (bz_system_facts){.gpu = imported || (device && !strcmp(device, "gpu")),
                             .device = imported ? "gpu" : bz_arena_str(arena, device ? device : ""),
                             .name = bz_arena_str(arena, imported ? imported
                                                         : name   ? name
                                                                  : ""),
                             .isa = bz_arena_str(arena, isa ? isa : ""),
                             .capability = capability ? strtod(capability, NULL) : 0,
                             .l2 = number(root, "l2"),
                             .clock = number(root, "clock"),
                             .bandwidth = number(root, "bandwidth")};
    cJSON_Delete(root);
}
