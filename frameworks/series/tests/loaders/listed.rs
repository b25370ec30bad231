// SPDX-License-Identifier: Apache-2.0
//! A model of the platform's list of BPF objects after Android 16: what an entry may have, and one of
//! theirs. It prints the list, one object a line.

type mode_t = u32;

struct MapDesc {
    name: &'static str,
    perms: mode_t,
    group: u32,
}

impl MapDesc {
    pub const fn new(group: u32, perms: mode_t, name: &'static str) -> Self {
        MapDesc { name, perms, group }
    }
}

struct ProgDesc {
    name: &'static str,
    group: u32,
}

impl ProgDesc {
    pub const fn new(group: u32, name: &'static str) -> Self {
        ProgDesc { name, group }
    }
}

struct BpfFileDesc {
    filename: &'static str,
    dir: &'static str,
    prefix: &'static str,
    critical: bool,
    skip_on_user: bool,
    maps: &'static [MapDesc],
    progs: &'static [ProgDesc],
}

const PERM_GRW: mode_t = 0o660;
const GID_ROOT: u32 = 0;
const GID_SYSTEM: u32 = 1000;

const FILE_ARR: &[BpfFileDesc] = &[
    BpfFileDesc {
        filename: "theirs.bpf",
        dir: "/etc/bpf/",
        prefix: "",
        critical: true,
        skip_on_user: false,
        maps: &[MapDesc::new(GID_SYSTEM, PERM_GRW, "their_map")],
        progs: &[ProgDesc::new(GID_SYSTEM, "skfilter_theirs")],
    },
];

mod bpf_android_bindgen {
    /// What /vendor has is loaded the old way, behind the list.
    pub fn vendorBpfLoader() {
        println!("vendor");
    }
}

fn main() {
    for file in FILE_ARR {
        print!("{}{} prefix={} critical={}", file.dir, file.filename, file.prefix, file.critical);
        print!(" skip={}", file.skip_on_user);
        for map in file.maps {
            print!(" map={}:{:o}:{}", map.name, map.perms, map.group);
        }
        for prog in file.progs {
            print!(" prog={}:{}", prog.name, prog.group);
        }
        println!();
    }
    bpf_android_bindgen::vendorBpfLoader();
}
