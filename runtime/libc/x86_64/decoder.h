/* SPDX-License-Identifier: MIT */
/* The instruction decoder, Zydis. */
#ifndef FLEXSC_RUNTIME_DECODER_H
#define FLEXSC_RUNTIME_DECODER_H

#include <stdbool.h>
#include <stddef.h>

/* Was Zydis found? If not, "why" receives the reason. */
bool flexsc__decoder_loaded(char *why, size_t size);

#endif /* FLEXSC_RUNTIME_DECODER_H */
