/* SPDX-License-Identifier: MIT */
#include "objects.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

#define HIDDEN	0x8000U	/* flag in a symbol's version: not the default version */

/* The symbol table of an object, with one or both hash tables. */
struct table {
	uintptr_t base;
	const ElfW(Sym) *symbols;
	const char *strings;
	const ElfW(Half) *versions;	/* or NULL */
	const uint32_t *gnu_hash;	/* or NULL */
	const uint32_t *hash;		/* or NULL */
};

bool flexsc__object_is_libc(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, "libc.so.", 8) || !strncmp(base, "ld-linux", 8);
}

/* The loader has made the addresses absolute, except in the kernel's object (vDSO). */
static const void *pointer(const struct table *table, const ElfW(Dyn) *entry)
{
	uintptr_t address = entry->d_un.d_ptr;

	return (const void *)(address < table->base ? table->base + address :
						      address);
}

static bool describe(const struct link_map *object, struct table *table)
{
	const ElfW(Dyn) *entry = object->l_ld;

	*table = (struct table){ .base = object->l_addr };
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_SYMTAB:
			table->symbols = pointer(table, entry);
			break;
		case DT_STRTAB:
			table->strings = pointer(table, entry);
			break;
		case DT_VERSYM:
			table->versions = pointer(table, entry);
			break;
		case DT_GNU_HASH:
			table->gnu_hash = pointer(table, entry);
			break;
		case DT_HASH:
			table->hash = pointer(table, entry);
			break;
		default:
			break;
		}
	}
	return table->symbols && table->strings &&
	       (table->gnu_hash || table->hash);
}

static bool fits(const struct table *table, uint32_t i, const char *name)
{
	const ElfW(Sym) *symbol = &table->symbols[i];
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && type != STT_TLS &&
	       ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
	       !(table->versions && table->versions[i] & HIDDEN) &&
	       !strcmp(table->strings + symbol->st_name, name);
}

/* Index of the symbol, or 0. */
static uint32_t in_gnu_hash(const struct table *table, const char *name)
{
	const uint32_t *head = table->gnu_hash;
	const uint32_t buckets = head[0], first = head[1], words = head[2];
	const uint64_t *bloom = (const uint64_t *)(head + 4);
	const uint32_t *bucket = (const uint32_t *)(bloom + words);
	const uint32_t *chain = bucket + buckets;
	uint32_t hash = 5381;
	uint64_t word;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	word = bloom[hash / 64 % words];
	if (!(word >> hash % 64 & word >> (hash >> head[3]) % 64 & 1))
		return 0;
	for (uint32_t i = bucket[hash % buckets]; i >= first; i++) {
		uint32_t its = chain[i - first];

		if ((its | 1) == (hash | 1) && fits(table, i, name))
			return i;
		if (its & 1)
			break;
	}
	return 0;
}

static uint32_t in_hash(const struct table *table, const char *name)
{
	const uint32_t *bucket = table->hash + 2;
	const uint32_t *chain = bucket + table->hash[0];
	uint32_t hash = 0, i;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	for (i = bucket[hash % table->hash[0]]; i; i = chain[i])
		if (fits(table, i, name))
			break;
	return i;
}

static void *look_up(const struct table *table, const char *name)
{
	uint32_t i = table->gnu_hash ? in_gnu_hash(table, name) :
				       in_hash(table, name);
	const ElfW(Sym) *symbol = &table->symbols[i];
	void *address;

	if (!i)
		return NULL;
	address = (void *)(table->base + symbol->st_value);
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		address = ((void *(*)(void))address)();
	return address;
}

static void find_in(const struct link_map *object, const char *const *names,
		    struct definition *found, size_t n)
{
	bool foreign = !flexsc__object_is_libc(object->l_name);
	struct table table;

	if (!describe(object, &table))
		return;
	for (size_t i = 0; i < n; i++) {
		if (found[i].address)
			continue;
		found[i].address = look_up(&table, names[i]);
		found[i].foreign = found[i].address && foreign;
	}
}

void flexsc__objects_find(const char *const *names, struct definition *found,
			  size_t n)
{
	const struct link_map *object = _r_debug.r_map;

	while (object && object->l_ld != _DYNAMIC)
		object = object->l_next;
	while (object && (object = object->l_next))
		find_in(object, names, found, n);
}
