/* SPDX-License-Identifier: MIT */
/*
 * The class of calls that are several calls in one: their arguments say more
 * than the table's row.
 */
#ifndef FLEXSC_REFINE_H
#define FLEXSC_REFINE_H

#include <linux/flexsc.h>

#include "table.h"

/* The class of a call with these arguments. CLASS_NEVER: -EOPNOTSUPP. */
enum call_class flexsc__refine(const struct table_row *row,
			       const struct flexsc_entry *entry);

#endif /* FLEXSC_REFINE_H */
