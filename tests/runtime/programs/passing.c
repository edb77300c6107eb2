/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "passing.h"

#define PASS(symbol, ...)						\
	__attribute__((used)) static struct passing passing_##symbol = { \
		.name = #symbol,					\
	};								\
	__asm__(".text\n"						\
		".globl " #symbol "\n"					\
		".type " #symbol ", @function\n"			\
		#symbol ":\n"						\
		"	leaq	passing_" #symbol "(%rip), %r11\n"	\
		"	cmpq	$0, 8(%r11)\n"				\
		"	jne	1f\n"					\
		"	jmpq	*(%r11)\n"				\
		"1:	movl	$0x4242, %eax\n"			\
		"	ret\n"						\
		".size " #symbol ", . - " #symbol "\n");

#define CALL PASS
#define POINT PASS
#define MADE PASS
#define ON_HOST PASS
#define FORK PASS
#define FORK_JUMP PASS
#define OWN PASS
#define WAIT PASS
#define TRY PASS
/* Those of liburing the runtime calls for itself. */
#define RING(symbol)
#include "runtime/base/symbols.def"
#undef PASS

#define PASS(symbol, ...)	&passing_##symbol,
static struct passing *const all[] = {
#include "runtime/base/symbols.def"
};

#define ALL	(sizeof(all) / sizeof(*all))

/* No other constructor comes before this that would call one of them. */
__attribute__((constructor)) static void find_next(void)
{
	for (unsigned int i = 0; i < ALL; i++)
		all[i]->next = dlsym(RTLD_NEXT, all[i]->name);
}

__attribute__((visibility("default"))) struct passing *
passing_find(const char *name)
{
	for (unsigned int i = 0; i < ALL; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}
