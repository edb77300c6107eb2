/* SPDX-License-Identifier: MIT */
/*
 * A FlexSC loop inside GLib's: posts a read of the standard input, and ends when
 * its callback has run. A GSource prepares, checks and dispatches. check() must
 * report readiness exactly, because GLib does not run sources of lower priority
 * while another source is ready.
 */
#include <flexsc/flexsc.h>
#include <glib.h>
#include <stdio.h>

struct source {
	GSource source;
	struct flexsc_loop *loop;
	gpointer fd;
	gint64 due; /* us */
};

static gboolean prepare(GSource *source, gint *timeout)
{
	struct source *s = (struct source *)source;
	uint64_t ns;

	*timeout = -1;
	s->due = G_MAXINT64;
	if (flexsc_loop_prepare(s->loop, &ns) || ns == FLEXSC_FOREVER)
		return FALSE;
	s->due = g_get_monotonic_time() + (gint64)(ns / 1000);
	*timeout = (gint)MIN(ns / 1000000 + 1, G_MAXINT);
	return ns == 0;
}

static gboolean check(GSource *source)
{
	struct source *s = (struct source *)source;

	return g_source_query_unix_fd(source, s->fd) ||
	       g_get_monotonic_time() >= s->due;
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	(void)callback;
	(void)data;
	return flexsc_loop_dispatch(((struct source *)source)->loop) >= 0;
}

static void on_read(struct flexsc_cb *cb)
{
	printf("%lld bytes\n", (long long)cb->ret);
	g_main_loop_quit(cb->arg);
}

int main(void)
{
	static GSourceFuncs functions = {
		.prepare = prepare,
		.check = check,
		.dispatch = dispatch,
	};
	static char text[4096];
	GMainLoop *outer = g_main_loop_new(NULL, FALSE);
	struct flexsc_cb cb = { .callback = on_read, .arg = outer };
	struct flexsc_loop *loop;
	struct source *s;

	if (flexsc_loop_create(&loop, NULL))
		return 1;
	s = (struct source *)g_source_new(&functions, sizeof(*s));
	s->loop = loop;
	s->fd = g_source_add_unix_fd(&s->source, flexsc_loop_fd(loop), G_IO_IN);
	g_source_attach(&s->source, NULL);
	flexsc_loop_read(loop, &cb, 0, text, sizeof(text));
	g_main_loop_run(outer);
	g_source_destroy(&s->source);
	g_source_unref(&s->source);
	g_main_loop_unref(outer);
	return flexsc_loop_destroy(loop);
}
