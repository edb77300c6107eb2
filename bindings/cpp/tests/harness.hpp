/* SPDX-License-Identifier: MIT */
/* tests/harness/harness.h for C++, and helpers shared by the programs here. */
#ifndef FLEXSC_TESTS_HARNESS_HPP
#define FLEXSC_TESTS_HARNESS_HPP

#include <flexsc/flexsc.hpp>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

extern "C" {
#include "tests/harness/harness.h"
}

using namespace std::chrono_literals;
using flexsc::event;
using flexsc::loop;
using flexsc::result;
using flexsc::task;
using flexsc::when_all;

/* Counts how often coroutines have ended: its destructor adds one. */
struct counted {
	unsigned int &n;
	~counted() { n++; }
};

/*
 * The code of the std::system_error that function() throws; 0 if it throws
 * none.
 */
template <class Function> int thrown_by(Function function)
{
	try {
		function();
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	return 0;
}

/* A pipe. Its read end stays empty unless a test writes to it. */
struct tube {
	int fd[2];

	tube() { CHECK_EQ(pipe2(fd, O_CLOEXEC), 0); }
	tube(tube &&) = delete;
	~tube()
	{
		close(fd[0]);
		close(fd[1]);
	}
};

#endif /* FLEXSC_TESTS_HARNESS_HPP */
