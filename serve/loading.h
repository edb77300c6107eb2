/* SPDX-License-Identifier: MIT */
/* What follows a part of a file, or of a folder's names, that was loaded. */
#ifndef SERVE_LOADING_H
#define SERVE_LOADING_H

struct flexsc_cb;

/* The callback of a load. */
void loading_on_load(struct flexsc_cb *cb);

#endif /* SERVE_LOADING_H */
