/* SPDX-License-Identifier: MIT */
/*
 * A FlexSC loop inside libuv's: posts a read of the standard input, and ends when
 * its callback has run. A uv_prepare_t runs just before libuv sleeps, and a timer
 * limits the sleep.
 *
 * Call uv_unref() on all three handles if pending calls should not keep uv_run()
 * running.
 */
#include <flexsc/flexsc.h>
#include <stdio.h>
#include <uv.h>

static struct flexsc_loop *loop;
static uv_timer_t timer;

static void dispatch(void)
{
	if (flexsc_loop_dispatch(loop) < 0)
		uv_stop(uv_default_loop());
}

static void on_time(uv_timer_t *handle)
{
	(void)handle;
	dispatch();
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
	(void)handle;
	(void)status;
	(void)events;
	dispatch();
}

static void on_prepare(uv_prepare_t *handle)
{
	uint64_t ns;

	(void)handle;
	if (flexsc_loop_prepare(loop, &ns))
		uv_stop(uv_default_loop());
	else if (ns == FLEXSC_FOREVER)
		uv_timer_stop(&timer);
	else
		uv_timer_start(&timer, on_time, ns / 1000000 + (ns % 1000000 > 0), 0);
}

static void on_read(struct flexsc_cb *cb)
{
	printf("%lld bytes\n", (long long)cb->ret);
	uv_stop(uv_default_loop());
}

int main(void)
{
	static char text[4096];
	struct flexsc_cb cb = { .callback = on_read };
	uv_prepare_t prepare;
	uv_poll_t poll;

	if (flexsc_loop_create(&loop, NULL))
		return 1;
	uv_prepare_init(uv_default_loop(), &prepare);
	uv_timer_init(uv_default_loop(), &timer);
	uv_poll_init(uv_default_loop(), &poll, flexsc_loop_fd(loop));
	uv_prepare_start(&prepare, on_prepare);
	uv_poll_start(&poll, UV_READABLE, on_readable);
	flexsc_loop_read(loop, &cb, 0, text, sizeof(text));
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	return flexsc_loop_destroy(loop);
}
