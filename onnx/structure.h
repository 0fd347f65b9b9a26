/* The structure of a model's file: all of it but the payloads of big tensors. Private to onnx/. */
#ifndef BZ_STRUCTURE_H
#define BZ_STRUCTURE_H

#include "onnx/onnx.h"
#include "onnx/wire.h"

/* Reads a file of `size` bytes; payloads of more than `keep` bytes (and some twenty) are passed over and become cuts,
 * and the lengths of what holds them shrink. `beginning` is what was read of it already, which is taken over, or
 * empty. out->data and out->cuts are the caller's to free, also on failure; out->fd is `fd`. */
int structure_read(int fd, uint64_t size, uint64_t keep, bz_buf *beginning, wire_bytes *out, bz_error *err);

/* A model of such bytes, which must outlive it (load.c). */
int structure_model(const wire_bytes *bytes, const char *name, bz_model **model, bz_error *err);

#endif
