/* SPDX-License-Identifier: MIT */
/* flexsc bench --raw load: where clients' connections come from. */
#include "tests/harness/harness.h"
#include "bench/load/route.h"

/* The first address of a route, or 1: the settings are wrong. */
static uint32_t source(const char *address, const char *given,
		       const char *otherwise)
{
	struct bench_settings settings = {
		.address = address, .source = given, .sources = 64, .port = 80,
	};
	struct bench_route route;

	return bench_route_init(&route, "load", &settings, otherwise) ?
		       1 : route.source;
}

TEST(clients_of_loopback_have_addresses_there)
{
	CHECK_EQ(source("127.0.0.1", NULL, "127.0.0.2"), 0x7f000002);
	CHECK_EQ(source("127.9.0.1", NULL, "127.0.0.2"), 0x7f000002);
	CHECK_EQ(source("127.0.0.1", NULL, NULL), 0);
}

/* connect() would fail: "Invalid argument". */
TEST(clients_of_other_networks_have_none_of_loopback)
{
	CHECK_EQ(source("192.0.2.1", NULL, "127.0.0.2"), 0);
	CHECK_EQ(source("10.0.0.1", NULL, "127.0.0.2"), 0);
}

TEST(a_source_that_is_given_is_taken)
{
	CHECK_EQ(source("192.0.2.1", "192.0.2.2", "127.0.0.2"), 0xc0000202);
	CHECK_EQ(source("127.0.0.1", "127.0.0.9", "127.0.0.2"), 0x7f000009);
	CHECK_EQ(source("127.0.0.1", "nowhere", "127.0.0.2"), 1);
	CHECK_EQ(source("nowhere", NULL, "127.0.0.2"), 1);
}
