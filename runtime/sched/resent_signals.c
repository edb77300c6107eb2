/* SPDX-License-Identifier: MIT */
#include "resent_signals.h"

#include <string.h>

#include "runtime/base/sigset.h"

/* The address of this byte marks a token. */
static char mark;

/*
 * Offset of a token's mark in a siginfo_t, in bytes. No kind of siginfo that can be
 * resent has data there.
 */
#define TOKEN_AT	40

static void make_token(siginfo_t *info)
{
	const char *is = &mark;

	memcpy((char *)info + TOKEN_AT, &is, sizeof(is));
}

static bool is_token(const siginfo_t *info)
{
	const char *is;

	memcpy(&is, (const char *)info + TOKEN_AT, sizeof(is));
	return is == &mark;
}

void flexsc__resent_keep(struct uthread *u, int signo, siginfo_t *info)
{
	if (signo <= SIGNAL_SETXID || u->host.first.si_signo || is_token(info))
		return;
	u->host.first = *info;
	make_token(info);
}

void flexsc__resent_give(struct uthread *u, int signo, siginfo_t *info)
{
	siginfo_t *first = &u->host.first, came = *info;

	if (first->si_signo != signo)
		return;
	*info = *first;
	*first = came;
	if (is_token(&came))
		first->si_signo = 0;
}

void flexsc__resent_unmask(struct uthread *u, sigmask_t mask)
{
	int signo = u->host.first.si_signo;

	if (signo && mask & SIGNAL_BIT(signo))
		u->host.first.si_signo = 0;
}
