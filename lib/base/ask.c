/* SPDX-License-Identifier: MIT */
#include "ask.h"

_Thread_local uint32_t flexsc__asks;
