/* What a program links to for marks. The capture library, loaded before, has functions of the same names that
 * record; these do nothing. */
#include "profile/marker/benanza.h"

__attribute__((visibility("default"))) void benanza_iteration_begin(void)
{
}

__attribute__((visibility("default"))) void benanza_iteration_end(void)
{
}
