//! Reads of an executable what an image without libraries depends on.

/// The machine of the executable: `62` is amd64, `183` arm64. `None` for anything that is not a 64-bit executable of Linux.
pub(super) fn machine(program: &[u8]) -> Option<u16> {
    let is_executable = program.starts_with(b"\x7fELF\x02\x01");
    is_executable.then(|| short(program, 18)).flatten()
}

/// Whether it names a loader of libraries: the image has none. `None` when the table of segments cannot be read.
pub(super) fn is_static(program: &[u8]) -> Option<bool> {
    const LOADER: [u8; 4] = 3_u32.to_le_bytes();
    let start = usize::try_from(u64::from_le_bytes(array(program, 32)?)).ok()?;
    let (size, count) = (usize::from(short(program, 54)?), usize::from(short(program, 56)?));
    let segments = (0..count).map(|number| array::<4>(program, start.checked_add(number.checked_mul(size)?)?));
    let kinds: Option<Vec<[u8; 4]>> = segments.collect();
    kinds.map(|kinds| !kinds.contains(&LOADER))
}

fn short(program: &[u8], at: usize) -> Option<u16> {
    array(program, at).map(u16::from_le_bytes)
}

fn array<const N: usize>(program: &[u8], at: usize) -> Option<[u8; N]> {
    program.get(at..at.checked_add(N)?)?.try_into().ok()
}
