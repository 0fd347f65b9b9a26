/* Databases of rocprofv3 (ROCm), which it calls rocpd. */
#ifndef BZ_PROFILE_ROCPD_H
#define BZ_PROFILE_ROCPD_H

#include "profile/scan.h"
#include "profile/trace.h"

/* Reads one that is open. False: it is none. What is damaged goes to the coverage. */
bool bz_rocpd_read(bz_trace *t, uint32_t source, bz_database *db);

#endif
