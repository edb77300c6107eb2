/* SPDX-License-Identifier: MIT */
/*
 * The time. A clock is used by one thread; clock_date() and clock_parse() are
 * pure. libc's gmtime_r() takes a lock that all threads share, so this file
 * computes the calendar itself.
 */
#define _GNU_SOURCE

#include "clock.h"
#include "text.h"

#define DAY	86400

static const char weekdays[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

struct civil {
	int64_t year;
	unsigned int month;	/* 0 to 11 */
	unsigned int day;	/* 1 to 31 */
	unsigned int weekday;	/* 0 is Sunday */
	unsigned int second;	/* of the day */
};

static bool leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 1 January 1970 to 1 January of a year that is at least 1. */
static int64_t days_before(int64_t year)
{
	int64_t y = year - 1;

	return y * 365 + y / 4 - y / 100 + y / 400 - 719162;
}

static void civil(struct civil *c, time_t time)
{
	static const uint8_t lengths[12] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
	};
	int64_t days, left;

	/*
	 * HTTP's years have four digits, but a file's date may be outside that
	 * range.
	 */
	if (time < 0)
		time = 0;
	if (time > 253402300799)
		time = 253402300799;
	days = time / DAY;
	c->second = time % DAY;
	c->weekday = (days + 4) % 7;
	c->year = 1970 + days / 366;
	while (days_before(c->year + 1) <= days)
		c->year++;
	left = days - days_before(c->year);
	for (c->month = 0; ; c->month++) {
		int n = lengths[c->month] + (c->month == 1 && leap(c->year));

		if (left < n)
			break;
		left -= n;
	}
	c->day = left + 1;
}

static char *put_time(char *p, const struct civil *c)
{
	p = text_two(p, c->second / 3600);
	*p++ = ':';
	p = text_two(p, c->second / 60 % 60);
	*p++ = ':';
	return text_two(p, c->second % 60);
}

static char *put_date(char *p, const struct civil *c)
{
	p = text_put(p, weekdays + 3 * c->weekday, 3);
	p = TEXT_PUT(p, ", ");
	p = text_two(p, c->day);
	*p++ = ' ';
	p = text_put(p, months + 3 * c->month, 3);
	*p++ = ' ';
	p = text_two(p, c->year / 100);
	p = text_two(p, c->year % 100);
	*p++ = ' ';
	p = put_time(p, c);
	return TEXT_PUT(p, " GMT");
}

static void put_log(char *p, const struct civil *c)
{
	p = text_two(p, c->day);
	*p++ = '/';
	p = text_put(p, months + 3 * c->month, 3);
	*p++ = '/';
	p = text_two(p, c->year / 100);
	p = text_two(p, c->year % 100);
	*p++ = ':';
	p = put_time(p, c);
	TEXT_PUT(p, " +0000");
}

char *clock_date(char *p, time_t time)
{
	struct civil c;

	civil(&c, time);
	return put_date(p, &c);
}

void clock_update(struct clock *clock)
{
	struct timespec now;
	struct civil c;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec == clock->now)
		return;
	clock->now = now.tv_sec;
	civil(&c, now.tv_sec);
	put_date(clock->date, &c);
	put_log(clock->log, &c);
}

uint64_t clock_ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * CLOCK_SECOND + now.tv_nsec;
}

bool clock_parse(const char *text, size_t length, time_t *time)
{
	static const char *const forms[] = {
		"%a, %d %b %Y %H:%M:%S GMT",
		"%A, %d-%b-%y %H:%M:%S GMT",
		"%a %b %d %H:%M:%S %Y",
	};
	char copy[64];
	size_t i;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(copy, forms[i], &tm);

		if (end && *end == '\0') {
			*time = timegm(&tm);
			return true;
		}
	}
	return false;
}
