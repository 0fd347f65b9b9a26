/* The rows: every implementation of every way. */
#include "runtime/memory/transfer.h"

#define EXCHANGE transfer_exchange, transfer_exchange_close
#define CHASE    transfer_chase, transfer_chase_close

/* clang-format off */
const transfer_row transfer_rows[] = {
    {BZ_TRANSFER_READ, "wide", true, NULL, transfer_read, NULL},
    {BZ_TRANSFER_WRITE, "wide", true, NULL, transfer_write, NULL},
    {BZ_TRANSFER_WRITE, "around", true, NULL, transfer_write_around, NULL},
    {BZ_TRANSFER_COPY, "memcpy", true, NULL, transfer_copy, NULL},
    {BZ_TRANSFER_COPY, "around", true, NULL, transfer_copy_around, NULL},
    {BZ_TRANSFER_COPY, "string", true, NULL, transfer_copy_string, NULL},
    {BZ_TRANSFER_SCALE, "wide", true, NULL, transfer_scale, NULL},
    {BZ_TRANSFER_SCALE, "around", true, NULL, transfer_scale_around, NULL},
    {BZ_TRANSFER_ADD, "wide", true, NULL, transfer_add, NULL},
    {BZ_TRANSFER_ADD, "around", true, NULL, transfer_add_around, NULL},
    {BZ_TRANSFER_TRIAD, "wide", true, NULL, transfer_triad, NULL},
    {BZ_TRANSFER_TRIAD, "around", true, NULL, transfer_triad_around, NULL},
    {BZ_TRANSFER_STRIDED, "loop", true, NULL, transfer_strided, NULL},
    {BZ_TRANSFER_SCATTERED, "loop", true, NULL, transfer_scattered, NULL},
    {BZ_TRANSFER_CHASE, "pages", false, transfer_chase_open, CHASE},
    {BZ_TRANSFER_CHASE, "huge pages", false, transfer_chase_open_huge, CHASE},
    {BZ_TRANSFER_TOUCH, "pages", false, NULL, transfer_touch, NULL},
    {BZ_TRANSFER_TOUCH, "huge pages", false, NULL, transfer_touch_huge, NULL},
    {BZ_TRANSFER_TOUCH, "populate", false, NULL, transfer_touch_populate, NULL},
    {BZ_TRANSFER_SHARED, "spin", false, transfer_spin_open, EXCHANGE},
    {BZ_TRANSFER_SHARED, "futex", false, transfer_sleep_open, EXCHANGE},
    {BZ_TRANSFER_PIPE, "pipe", false, transfer_pipe_open, EXCHANGE},
    {BZ_TRANSFER_SOCKET, "stream", false, transfer_socket_open, EXCHANGE},
    {BZ_TRANSFER_TCP, "loopback", false, transfer_tcp_open, EXCHANGE},
    {BZ_TRANSFER_FILE, "pread", false, transfer_file_open, transfer_file, transfer_file_close},
    {BZ_TRANSFER_FILE_COLD, "dropped", false, transfer_file_open_direct, transfer_file_dropped, transfer_file_close},
    {BZ_TRANSFER_MAPPED, "fault", false, transfer_file_open, transfer_mapped, transfer_file_close},
    {BZ_TRANSFER_MAPPED, "populate", false, transfer_file_open, transfer_mapped_populate, transfer_file_close},
    {0},
};
/* clang-format on */
