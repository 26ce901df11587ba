// What a cubin says of its kernels. It is an ELF file with a code section and records of its own for each.

#pragma once

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

// A section by its name, or null.
static const Elf64_Shdr *section(const std::string &image, const std::string &name)
{
    const auto *header = (const Elf64_Ehdr *)image.data();
    const auto *sections = (const Elf64_Shdr *)(image.data() + header->e_shoff);
    const char *names = image.data() + sections[header->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < header->e_shnum; ++i)
        if (names + sections[i].sh_name == name)
            return &sections[i];
    return nullptr;
}

// The ELF symbol of a kernel, which its code section has in sh_info; -1 where there is no such kernel.
static int symbol_of(const std::string &image, const std::string &kernel)
{
    const auto *code = section(image, ".text." + kernel);
    return code ? code->sh_info & 0xffffff : -1;
}

// How much shared memory a kernel declares.
static size_t shared_bytes(const std::string &image, const std::string &kernel)
{
    const auto *shared = section(image, ".nv.shared." + kernel);
    return shared ? shared->sh_size : 0;
}

// The size of a variable by its ELF symbol, 0 where there is none.
static size_t variable_bytes(const std::string &image, const std::string &variable)
{
    const auto *header = (const Elf64_Ehdr *)image.data();
    const auto *sections = (const Elf64_Shdr *)(image.data() + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const char *names = image.data() + sections[sections[i].sh_link].sh_offset;
        const auto *symbols = (const Elf64_Sym *)(image.data() + sections[i].sh_offset);
        for (unsigned j = 0; j < sections[i].sh_size / sizeof *symbols; ++j)
            if (names + symbols[j].st_name == variable)
                return symbols[j].st_size;
    }
    return 0;
}

// What section .nv.info says of a kernel: records of an attribute, a size of 8, the symbol and a value.
enum Recorded : char { REGISTERS = 0x2f, FRAME_BYTES = 0x11 };
static int recorded(const std::string &image, Recorded what, int symbol)
{
    std::string record{4, what, 8, 0};
    record.append((const char *)&symbol, sizeof symbol);
    size_t place = image.find(record);
    int value = 0;
    if (place != std::string::npos)
        std::memcpy(&value, image.data() + place + record.size(), sizeof value);
    return value;
}

// How many parameters a kernel has: a record of each is in a section of the kernel's own.
static unsigned parameters_of(const std::string &image, const std::string &kernel)
{
    const auto *own = section(image, ".nv.info." + kernel);
    const std::string info = own ? image.substr(own->sh_offset, own->sh_size) : "", record{4, 0x17, 12, 0};
    unsigned count = 0;
    for (size_t at = info.find(record); at != std::string::npos; at = info.find(record, at + record.size()))
        ++count;
    return count;
}

// Its length, which nobody tells the driver.
static size_t elf_bytes(const void *image)
{
    const auto *header = (const Elf64_Ehdr *)image;
    const auto *sections = (const Elf64_Shdr *)((const char *)image + header->e_shoff);
    size_t bytes = header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
    for (unsigned i = 0; i < header->e_shnum; ++i)
        if (sections[i].sh_type != SHT_NOBITS)
            bytes = std::max<size_t>(bytes, sections[i].sh_offset + sections[i].sh_size);
    return bytes;
}
