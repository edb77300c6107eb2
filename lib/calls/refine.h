/* SPDX-License-Identifier: MIT */
/*
 * Calls that are several calls in one: what the arguments say beyond the
 * table's row.
 */
#ifndef FLEXSC_REFINE_H
#define FLEXSC_REFINE_H

#include <linux/flexsc.h>

#include "table.h"

/* The class of this very call; CLASS_NEVER: complete it with -EOPNOTSUPP. */
enum call_class flexsc__refine(const struct table_row *row,
			       const struct flexsc_entry *entry);

#endif /* FLEXSC_REFINE_H */
