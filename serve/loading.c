/* SPDX-License-Identifier: MIT */
/* Runs on the worker's thread. */
#include "loading.h"

#include <errno.h>

#include <flexsc/flexsc.h>

#include "exchange.h"
#include "listing.h"
#include "message.h"
#include "transfer.h"

/* Handle a file that has become shorter since statx(). */
static void cut_short(struct exchange *x)
{
	if (x->response.status != 200) {
		message_send(x, 500);
		return;
	}
	x->needed = x->have;
	x->left = 0;
	if (x->needed)
		transfer_file(x);
	else
		transfer_head(x, 0);
}

/*
 * If this part is the whole file, map it, so that the next answer needn't load
 * it.
 */
static void answer_loaded(struct exchange *x)
{
	if (x->file->cached && x->have == x->file->size)
		cache_map(x->file);
	transfer_file(x);
}

static void loaded(struct exchange *x, int64_t ret)
{
	if (ret > 0)
		x->have += ret;
	if (x->stage == EXCHANGE_LIST)
		listing_loaded(x, ret);
	else if (ret < 0 && ret != -EINTR)
		message_send_error(x, -ret);
	else if (ret == 0)
		cut_short(x);
	else if (x->have < x->needed)
		transfer_load(x);
	else
		answer_loaded(x);
}

void loading_on_load(struct flexsc_cb *cb)
{
	struct exchange *x = cb->arg;
	bool going = exchange_completed(x, OP_LOAD);

	if (going)
		loaded(x, cb->ret);
	exchange_settle(x);
}
