/* The rows: every implementation of every way. */
#include "runtime/memory/transfer.h"

#define ARRAYS   false, true, NULL, transfer_arrays, NULL
#define EXCHANGE transfer_exchange, transfer_exchange_close, NULL
#define CHASE    transfer_chase, transfer_chase_close, NULL
#define PACK     false, false, transfer_packing_open, transfer_pack, transfer_packing_close, NULL
#define UNPACK   false, false, transfer_packing_open, transfer_unpack, transfer_packing_close, NULL

/* clang-format off */
const transfer_row transfer_rows[] = {
    {BZ_TRANSFER_READ, "wide", false, true, NULL, transfer_read, NULL, NULL},
    {BZ_TRANSFER_WRITE, "wide", ARRAYS, array_write},
    {BZ_TRANSFER_WRITE, "halves", ARRAYS, array_write_halves},
    {BZ_TRANSFER_WRITE, "around", ARRAYS, array_write_around},
    {BZ_TRANSFER_COPY, "memcpy", ARRAYS, array_copy},
    {BZ_TRANSFER_COPY, "around", ARRAYS, array_copy_around},
    {BZ_TRANSFER_COPY, "string", ARRAYS, array_copy_string},
    {BZ_TRANSFER_SCALE, "wide", ARRAYS, array_scale},
    {BZ_TRANSFER_SCALE, "halves", ARRAYS, array_scale_halves},
    {BZ_TRANSFER_SCALE, "around", ARRAYS, array_scale_around},
    {BZ_TRANSFER_ADD, "wide", ARRAYS, array_add},
    {BZ_TRANSFER_ADD, "halves", ARRAYS, array_add_halves},
    {BZ_TRANSFER_ADD, "around", ARRAYS, array_add_around},
    {BZ_TRANSFER_TRIAD, "wide", ARRAYS, array_triad},
    {BZ_TRANSFER_TRIAD, "halves", ARRAYS, array_triad_halves},
    {BZ_TRANSFER_TRIAD, "around", ARRAYS, array_triad_around},
    {BZ_TRANSFER_STRIDED, "loop", ARRAYS, array_strided},
    {BZ_TRANSFER_SCATTERED, "loop", false, true, NULL, transfer_scattered, NULL, NULL},
    {BZ_TRANSFER_CHASE, "pages", false, false, transfer_chase_open, CHASE},
    {BZ_TRANSFER_CHASE_HUGE, "huge pages", false, false, transfer_chase_open, CHASE},
    {BZ_TRANSFER_TOUCH, "pages", false, false, NULL, transfer_touch, NULL, NULL},
    {BZ_TRANSFER_TOUCH_HUGE, "huge pages", false, false, NULL, transfer_touch_huge, NULL, NULL},
    {BZ_TRANSFER_TOUCH, "populate", false, false, NULL, transfer_touch_populate, NULL, NULL},
    {BZ_TRANSFER_SHARED, "spin", true, false, transfer_shared_open, EXCHANGE},
    {BZ_TRANSFER_WAKE, "futex", true, false, transfer_shared_open, EXCHANGE},
    {BZ_TRANSFER_PIPE, "pipe", true, false, transfer_pipe_open, EXCHANGE},
    {BZ_TRANSFER_SOCKET, "stream", true, false, transfer_socket_open, EXCHANGE},
    {BZ_TRANSFER_TCP, "loopback", true, false, transfer_tcp_open, EXCHANGE},
    {BZ_TRANSFER_FILE, "pread", false, false, transfer_file_open, transfer_file, transfer_file_close, NULL},
    {BZ_TRANSFER_FILE_COLD, "dropped", true, false, transfer_file_open_direct, transfer_file_dropped, transfer_file_close, NULL},
    {BZ_TRANSFER_MAPPED, "fault", false, false, transfer_file_open, transfer_mapped, transfer_file_close, NULL},
    {BZ_TRANSFER_MAPPED, "populate", false, false, transfer_file_open, transfer_mapped_populate, transfer_file_close, NULL},
    {BZ_TRANSFER_ZLIB, "level 6", PACK},
    {BZ_TRANSFER_UNZLIB, "level 6", UNPACK},
    {BZ_TRANSFER_ZSTD, "level 3", PACK},
    {BZ_TRANSFER_UNZSTD, "level 3", UNPACK},
    {BZ_TRANSFER_LZ4, "fast", PACK},
    {BZ_TRANSFER_UNLZ4, "fast", UNPACK},
    {BZ_TRANSFER_FAR, "read", false, false, transfer_far_open, transfer_far, transfer_far_close, NULL},
    {BZ_TRANSFER_FAR_CHASE, "huge pages", false, false, transfer_far_open_ring, transfer_far_chase, transfer_far_close, NULL},
    {0},
};
/* clang-format on */
