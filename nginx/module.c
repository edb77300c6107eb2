/* SPDX-License-Identifier: MIT */
/*
 * The module's interface to nginx: directives, the registration of its content
 * handler, and the start and exit of a worker. The master process only reads
 * directives.
 */
#include "module.h"

#include "lib/base/cores.h"

/*
 * nginx runs content handlers in the reverse order of their array; the first
 * element is nginx' own handler for static files. The module's is inserted
 * second, so it runs right before nginx' own and after all others.
 */
static ngx_int_t add_handler(ngx_conf_t *cf)
{
	ngx_http_core_main_conf_t *core =
		ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
	ngx_array_t *handlers = &core->phases[NGX_HTTP_CONTENT_PHASE].handlers;
	ngx_http_handler_pt *all;

	if (!ngx_array_push(handlers))
		return NGX_ERROR;
	all = handlers->elts;
	if (handlers->nelts > 2)
		ngx_memmove(all + 2, all + 1,
			    (handlers->nelts - 2) * sizeof(*all));
	all[handlers->nelts > 1] = file_handler;
	return NGX_OK;
}

static ngx_int_t add_to_http(ngx_conf_t *cf)
{
	const struct everywhere *all = ngx_http_conf_get_module_main_conf(
		cf, ngx_http_flexsc_module);

	return all->used ? add_handler(cf) : NGX_OK;
}

static void *create_main(ngx_conf_t *cf)
{
	struct everywhere *made = ngx_pcalloc(cf->pool, sizeof(*made));

	if (made)
		made->keep = NGX_CONF_UNSET;
	return made;
}

static void *create_location(ngx_conf_t *cf)
{
	struct location *made = ngx_pcalloc(cf->pool, sizeof(*made));

	if (!made)
		return NULL;
	made->on = NGX_CONF_UNSET;
	made->send = NGX_CONF_UNSET;
	made->whole = NGX_CONF_UNSET_SIZE;
	return made;
}

static char *merge_location(ngx_conf_t *cf, void *parent, void *child)
{
	const struct location *outer = parent;
	struct location *inner = child;
	struct everywhere *all = ngx_http_conf_get_module_main_conf(
		cf, ngx_http_flexsc_module);

	ngx_conf_merge_value(inner->on, outer->on, 0);
	ngx_conf_merge_value(inner->send, outer->send, 1);
	ngx_conf_merge_size_value(inner->whole, outer->whole, 32 * 1024);
	all->used |= inner->on;
	return NGX_CONF_OK;
}

/*
 * Check the list when the configuration is read, so that "nginx -t" and a reload report
 * an error. Workers may use the same cores as the master process, except with
 * worker_cpu_affinity: turn.c.
 */
static char *set_kernel_cores(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	struct everywhere *all = conf;
	char *failed = ngx_conf_set_str_slot(cf, command, conf);
	char why[120];
	cpu_set_t rest;

	if (failed)
		return failed;
	if (!flexsc__cores_split((char *)all->kernel_cores.data, &rest, why,
				 sizeof(why)))
		return NGX_CONF_OK;
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "flexsc_kernel_cores %V: %s",
			   &all->kernel_cores, why);
	return NGX_CONF_ERROR;
}

#define ANYWHERE (NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF)

static ngx_command_t commands[] = {
	{ ngx_string("flexsc"), ANYWHERE | NGX_CONF_FLAG,
	  ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET,
	  offsetof(struct location, on), NULL },
	{ ngx_string("flexsc_send"), ANYWHERE | NGX_CONF_FLAG,
	  ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET,
	  offsetof(struct location, send), NULL },
	{ ngx_string("flexsc_whole"), ANYWHERE | NGX_CONF_TAKE1,
	  ngx_conf_set_size_slot, NGX_HTTP_LOC_CONF_OFFSET,
	  offsetof(struct location, whole), NULL },
	{ ngx_string("flexsc_keep"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1,
	  ngx_conf_set_num_slot, NGX_HTTP_MAIN_CONF_OFFSET,
	  offsetof(struct everywhere, keep), NULL },
	{ ngx_string("flexsc_kernel_cores"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1,
	  set_kernel_cores, NGX_HTTP_MAIN_CONF_OFFSET,
	  offsetof(struct everywhere, kernel_cores), NULL },
	ngx_null_command
};

static ngx_http_module_t context = {
	.postconfiguration = add_to_http,
	.create_main_conf = create_main,
	.create_loc_conf = create_location,
	.merge_loc_conf = merge_location,
};

static const struct everywhere *everywhere_of(ngx_cycle_t *cycle)
{
	if (!ngx_get_conf(cycle->conf_ctx, ngx_http_module))
		return NULL;
	return ngx_http_cycle_get_module_main_conf(cycle,
						   ngx_http_flexsc_module);
}

static ngx_int_t init_process(ngx_cycle_t *cycle)
{
	const struct everywhere *all = everywhere_of(cycle);

	if (ngx_process != NGX_PROCESS_WORKER &&
	    ngx_process != NGX_PROCESS_SINGLE)
		return NGX_OK;
	if (!all || !all->used)
		return NGX_OK;
	if (turn_init(cycle, (const char *)all->kernel_cores.data) != NGX_OK)
		return NGX_ERROR;
	if (!turn.loop)
		return NGX_OK;
	if (all->keep > 0 &&
	    keep_init((ngx_uint_t)all->keep, cycle->log) != NGX_OK)
		return NGX_ERROR;
	return send_init(cycle);
}

static void exit_process(ngx_cycle_t *cycle)
{
	turn_fini();
}

ngx_module_t ngx_http_flexsc_module = {
	NGX_MODULE_V1,
	.ctx = &context,
	.commands = commands,
	.type = NGX_HTTP_MODULE,
	.init_process = init_process,
	.exit_process = exit_process,
};

/* Symbols that nginx looks up in the shared object, besides the module's. */
#define EXPORT __attribute__((visibility("default")))

EXPORT ngx_module_t *ngx_modules[] = { &ngx_http_flexsc_module, NULL };
EXPORT char *ngx_module_names[] = { "ngx_http_flexsc_module", NULL };
