/* SPDX-License-Identifier: MIT */
/* Handles the parts of a file, or of a folder's names, that were loaded. */
#ifndef SERVE_LOADING_H
#define SERVE_LOADING_H

struct flexsc_cb;

/* The callback of each load. */
void loading_on_load(struct flexsc_cb *cb);

#endif /* SERVE_LOADING_H */
