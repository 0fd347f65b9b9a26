/* What a program links to for marks. The capture library, loaded before, has functions of the same names that
 * record; these do nothing. */
#include "profile/marker/benanza.h"

__attribute__((visibility("default"))) void benanza_iteration_begin(void)
{
}

__attribute__((visibility("default"))) void benanza_iteration_end(void)
{
}

__attribute__((visibility("default"))) void benanza_range_begin(const char *name)
{
    (void)name;
}

__attribute__((visibility("default"))) void benanza_range_end(void)
{
}

__attribute__((visibility("default"))) void benanza_fact(const char *key, const char *value)
{
    (void)key;
    (void)value;
}
