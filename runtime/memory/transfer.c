/* The rows: every implementation of every way. */
#include "runtime/memory/transfer.h"

#define EXCHANGE transfer_exchange, transfer_exchange_close
#define CHASE    transfer_chase, transfer_chase_close
#define PACK     false, false, transfer_packing_open, transfer_pack, transfer_packing_close
#define UNPACK   false, false, transfer_packing_open, transfer_unpack, transfer_packing_close

/* clang-format off */
const transfer_row transfer_rows[] = {
    {BZ_TRANSFER_READ, "wide", false, true, NULL, transfer_read, NULL},
    {BZ_TRANSFER_WRITE, "wide", false, true, NULL, transfer_write, NULL},
    {BZ_TRANSFER_WRITE, "halves", false, true, NULL, transfer_write_halves, NULL},
    {BZ_TRANSFER_WRITE, "around", false, true, NULL, transfer_write_around, NULL},
    {BZ_TRANSFER_COPY, "memcpy", false, true, NULL, transfer_copy, NULL},
    {BZ_TRANSFER_COPY, "around", false, true, NULL, transfer_copy_around, NULL},
    {BZ_TRANSFER_COPY, "string", false, true, NULL, transfer_copy_string, NULL},
    {BZ_TRANSFER_SCALE, "wide", false, true, NULL, transfer_scale, NULL},
    {BZ_TRANSFER_SCALE, "halves", false, true, NULL, transfer_scale_halves, NULL},
    {BZ_TRANSFER_SCALE, "around", false, true, NULL, transfer_scale_around, NULL},
    {BZ_TRANSFER_ADD, "wide", false, true, NULL, transfer_add, NULL},
    {BZ_TRANSFER_ADD, "halves", false, true, NULL, transfer_add_halves, NULL},
    {BZ_TRANSFER_ADD, "around", false, true, NULL, transfer_add_around, NULL},
    {BZ_TRANSFER_TRIAD, "wide", false, true, NULL, transfer_triad, NULL},
    {BZ_TRANSFER_TRIAD, "halves", false, true, NULL, transfer_triad_halves, NULL},
    {BZ_TRANSFER_TRIAD, "around", false, true, NULL, transfer_triad_around, NULL},
    {BZ_TRANSFER_STRIDED, "loop", false, true, NULL, transfer_strided, NULL},
    {BZ_TRANSFER_SCATTERED, "loop", false, true, NULL, transfer_scattered, NULL},
    {BZ_TRANSFER_CHASE, "pages", false, false, transfer_chase_open, CHASE},
    {BZ_TRANSFER_CHASE_HUGE, "huge pages", false, false, transfer_chase_open, CHASE},
    {BZ_TRANSFER_TOUCH, "pages", false, false, NULL, transfer_touch, NULL},
    {BZ_TRANSFER_TOUCH_HUGE, "huge pages", false, false, NULL, transfer_touch_huge, NULL},
    {BZ_TRANSFER_TOUCH, "populate", false, false, NULL, transfer_touch_populate, NULL},
    {BZ_TRANSFER_SHARED, "spin", true, false, transfer_shared_open, EXCHANGE},
    {BZ_TRANSFER_WAKE, "futex", true, false, transfer_shared_open, EXCHANGE},
    {BZ_TRANSFER_PIPE, "pipe", true, false, transfer_pipe_open, EXCHANGE},
    {BZ_TRANSFER_SOCKET, "stream", true, false, transfer_socket_open, EXCHANGE},
    {BZ_TRANSFER_TCP, "loopback", true, false, transfer_tcp_open, EXCHANGE},
    {BZ_TRANSFER_FILE, "pread", false, false, transfer_file_open, transfer_file, transfer_file_close},
    {BZ_TRANSFER_FILE_COLD, "dropped", true, false, transfer_file_open_direct, transfer_file_dropped, transfer_file_close},
    {BZ_TRANSFER_MAPPED, "fault", false, false, transfer_file_open, transfer_mapped, transfer_file_close},
    {BZ_TRANSFER_MAPPED, "populate", false, false, transfer_file_open, transfer_mapped_populate, transfer_file_close},
    {BZ_TRANSFER_ZLIB, "level 6", PACK},
    {BZ_TRANSFER_UNZLIB, "level 6", UNPACK},
    {BZ_TRANSFER_ZSTD, "level 3", PACK},
    {BZ_TRANSFER_UNZSTD, "level 3", UNPACK},
    {BZ_TRANSFER_LZ4, "fast", PACK},
    {BZ_TRANSFER_UNLZ4, "fast", UNPACK},
    {BZ_TRANSFER_FAR, "read", false, false, transfer_far_open, transfer_far, transfer_far_close},
    {BZ_TRANSFER_FAR_CHASE, "huge pages", false, false, transfer_far_open_ring, transfer_far_chase, transfer_far_close},
    {0},
};
/* clang-format on */
