//! TUN device with TCP segmentation offload, and priority for the threads that serve it. `unsafe` for three ioctls
//! and one system call that no library in use offers.
#![expect(unsafe_code, reason = "ioctl and sched_setscheduler; each use says why it is sound")]

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use array::{Error, Result};
use rustix::fs::OFlags;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

use super::packet::{MAX_PACKET_BYTES, VIRTIO_BYTES};

/// Size of the name of a device with its terminator (IFNAMSIZ).
const NAME_BYTES: usize = 16;
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PACKET_INFO: u16 = 0x1000;
const IFF_VIRTIO_HEADER: u16 = 0x4000;
/// Offloads: checksums, and super-packets of TCP over IPv4, also with ECN.
const OFFLOADS: usize = 0x01 | 0x02 | 0x08;
const SET_DEVICE: Opcode = opcode::write::<i32>(b'T', 202);
const SET_OFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);
const SET_VIRTIO_BYTES: Opcode = opcode::write::<i32>(b'T', 216);

/// `struct ifreq` as TUNSETIFF reads it.
#[repr(C)]
struct DeviceRequest {
    name: [u8; NAME_BYTES],
    flags: u16,
    rest: [u8; 22],
}

/// TUN device; removed when this is dropped.
#[derive(Debug)]
pub(super) struct Tun(File);

impl Tun {
    /// Creates the device `name` in the calling thread's network namespace.
    ///
    /// # Errors
    /// `Denied` without root, `Unsupported` where the kernel has no TUN devices.
    pub(super) fn create(name: &str) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open("/dev/net/tun")
            .map_err(|e| {
                Error::from(e).context("opening /dev/net/tun, which an emulated link needs (modprobe tun)")
            })?;
        let mut request = DeviceRequest {
            name: [0; NAME_BYTES],
            flags: IFF_TUN | IFF_NO_PACKET_INFO | IFF_VIRTIO_HEADER,
            rest: [0; 22],
        };
        let name = &name.as_bytes()[..name.len().min(NAME_BYTES - 1)];
        request.name[..name.len()].copy_from_slice(name);
        // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, 40 bytes, which `DeviceRequest` is; it lives until the
        // call returns.
        unsafe { ioctl(&file, Updater::<SET_DEVICE, DeviceRequest>::new(&mut request)) }.map_err(|e| {
            Error::from(std::io::Error::from(e)).context("making a TUN device, which needs root")
        })?;
        let header_bytes = i32::try_from(VIRTIO_BYTES).unwrap_or(0);
        // SAFETY: TUNSETVNETHDRSZ reads one `int` through the pointer.
        unsafe { ioctl(&file, Setter::<SET_VIRTIO_BYTES, i32>::new(header_bytes)) }
            .map_err(|e| Error::from(std::io::Error::from(e)).context("setting up a TUN device"))?;
        // SAFETY: TUNSETOFFLOAD takes the flags themselves as its argument and touches no memory.
        unsafe { ioctl(&file, IntegerSetter::<SET_OFFLOAD>::new_usize(OFFLOADS)) }.map_err(|e| {
            Error::from(std::io::Error::from(e)).context("switching a TUN device's offload on")
        })?;
        Ok(Self(file))
    }

    /// Reads the next packet with its virtio header into `buffer`; returns its size, or `None` if there is none now.
    ///
    /// # Errors
    /// Those of a device that no longer exists.
    pub(super) fn read(&self, buffer: &mut [u8; MAX_PACKET_BYTES]) -> Result<Option<usize>> {
        match (&self.0).read(buffer) {
            Ok(size) => Ok(Some(size).filter(|size| *size > 0)),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(Error::from(e).context("reading from a TUN device")),
        }
    }

    /// Writes a packet to the host; returns false if it was not accepted.
    pub(super) fn write(&self, parts: &[IoSlice<'_>]) -> bool {
        (&self.0).write_vectored(parts).is_ok()
    }

    /// Returns the file descriptor, for waiting.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives the calling thread priority over all ordinary ones, with exact timers; returns false if that is not permitted.
pub(super) fn raise_priority() -> bool {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: `parameters` lives until the call returns; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}
