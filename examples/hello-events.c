/* SPDX-License-Identifier: MIT */
/*
 * A program that computes and gets events meanwhile (SEND, section 3.3). It
 * looks for prime numbers, and never checks whether something happened. SIGINT
 * (Ctrl-C) and a timer preempt it; the third SIGINT ends it.
 *
 * 	hello-events [SECONDS]	ends by itself after so long
 */
#include <flexsc/ecb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Groups; the lower one has priority. */
enum { SIGNALS, TIMERS };

static volatile sig_atomic_t interrupts, ticks;
static volatile unsigned long primes;

/*
 * Handlers must not call printf(), because they may interrupt printf() itself.
 */
static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

/* The only handler; it handles all pending events. */
static void handle(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, UINT32_MAX, &event)) {
		if (event.type == FLEXSC_EVT_TIMER) {
			ticks++;
		} else {
			interrupts++;
			say("received SIGINT\n");
		}
	}
}

static int is_prime(unsigned long n)
{
	for (unsigned long i = 2; i * i <= n; i++)
		if (n % i == 0)
			return 0;
	return 1;
}

static void fail(const char *what, int err)
{
	fprintf(stderr, "hello-events: %s: %s\n", what, strerror(-err));
	exit(1);
}

static struct flexsc_ecb *start(void)
{
	struct flexsc_ecb *ecb;
	sigset_t set;
	int err;

	err = flexsc_ecb_create(&ecb, NULL);
	if (err)
		fail("no event control block", err);
	flexsc_ecb_handler(ecb, handle, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	err = flexsc_ecb_signal(ecb, &set, SIGNALS, NULL);
	if (err < 0)
		fail("signals", err);
	err = flexsc_ecb_timer(ecb, 1000000000, 1000000000, TIMERS, NULL);
	if (err < 0)
		fail("timer", err);
	return ecb;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;
	struct flexsc_ecb *ecb = start();
	int err;

	fputs("hello-events: computing until the third Ctrl-C\n", stderr);
	err = flexsc_ecb_notify(ecb, 1U << SIGNALS | 1U << TIMERS);
	if (err)
		fail("notification", err);
	for (unsigned long n = 2; interrupts < 3; n++) {
		primes += (unsigned long)is_prime(n);
		if (seconds && ticks >= seconds)
			break;
	}
	flexsc_ecb_destroy(ecb);
	printf("%lu primes in %d seconds\n", primes, (int)ticks);
	return 0;
}
