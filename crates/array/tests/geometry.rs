//! Targets, block grids and the choice of blocks, against naive models.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "helpers of tests, small numbers")]

use std::collections::HashSet;

use corridor_array::{
    Affine, AxisKind, AxisRange, BlockParts, DType, ElementType, ErrorKind, Level, LevelOrigin,
    MAX_BLOCK_BYTES, MIN_BLOCK_BYTES, Region, Selection, Target, c_strides, choose_blocks, cut_by_grid,
};
use proptest::prelude::*;

fn sizes(n: u64, piece: u64) -> Vec<usize> {
    let piece = piece.max(1);
    (0..n.div_ceil(piece)).map(|i| usize::try_from(piece.min(n - i * piece)).unwrap()).collect()
}

fn shape_and_block() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
    prop::collection::vec((0u64..9, 1u64..6), 0..5).prop_map(|axes| axes.into_iter().unzip())
}

fn level(shape: &[u64], block: &[u64]) -> Level {
    Level {
        shape: shape.to_vec(),
        block: block.to_vec(),
        chunk: None,
        origin: LevelOrigin::Stored,
        factor: vec![1.0; shape.len()],
        world_from_voxel: Affine::IDENTITY,
    }
}

/// All positions of a box, C order.
fn positions(selection: &Selection) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for range in selection.ranges() {
        let with = |at: &Vec<u64>| {
            let at = at.clone();
            (0..range.count).map(move |i| [at.clone(), vec![range.index(i)]].concat())
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

proptest! {
    #[test]
    fn pieces_of_a_target_are_disjoint_and_cover_it((shape, block) in shape_and_block(), item in 1usize..9) {
        let (target, region) = Target::new(&shape, item).unwrap();
        let cuts: Vec<Vec<usize>> = shape.iter().zip(&block).map(|(&n, &b)| sizes(n, b)).collect();
        let pieces = region.grid(&cuts).unwrap();
        prop_assert_eq!(pieces.len(), cuts.iter().map(Vec::len).product::<usize>());
        // Every piece adds its number; an element written twice or never shows.
        let mut expected_elements = 0;
        for (number, mut piece) in pieces.into_iter().enumerate() {
            let mark = u8::try_from(number % 250 + 1).unwrap();
            expected_elements += piece.size_bytes();
            let bytes = vec![mark; piece.size_bytes()];
            piece.write_all(&bytes).unwrap();
        }
        let bytes = target.into_vec().unwrap();
        prop_assert_eq!(bytes.len(), expected_elements);
        prop_assert!(bytes.iter().all(|&b| b != 0));
    }

    #[test]
    fn strided_writes_equal_the_naive_copy(
        axes in prop::collection::vec((1u64..6, 1u64..4, 0u64..3), 0..4), item in 1usize..5,
    ) {
        // A selection (start, step) of a source just large enough, into a target.
        let ranges: Vec<AxisRange> =
            axes.iter().map(|&(count, step, start)| AxisRange { start, count, step }).collect();
        let source_shape: Vec<usize> =
            ranges.iter().map(|r| usize::try_from(r.end() + 1).unwrap()).collect();
        let source: Vec<u8> = (0..source_shape.iter().product::<usize>() * item).map(|i| (i % 251) as u8).collect();
        let selection = Selection::new(ranges).unwrap();
        let strides = c_strides(&source_shape, item);
        let offset = |at: &[u64]| at.iter().zip(&strides).map(|(&p, s)| usize::try_from(p).unwrap() * s).sum::<usize>();

        let naive: Vec<u8> =
            positions(&selection).iter().flat_map(|at| source[offset(at)..][..item].to_vec()).collect();

        let (target, mut region) = Target::new(&selection.shape(), item).unwrap();
        let first: Vec<u64> = selection.ranges().iter().map(|r| r.start).collect();
        let stepped: Vec<usize> = strides.iter().zip(selection.ranges())
            .map(|(s, r)| s * usize::try_from(r.step).unwrap()).collect();
        region.write_strided(&source[offset(&first)..], &stepped).unwrap();
        drop(region);
        prop_assert_eq!(target.into_vec().unwrap(), naive);
    }

    #[test]
    fn blocks_tile_a_level_exactly((shape, block) in shape_and_block()) {
        let level = level(&shape, &block);
        let mut seen = HashSet::new();
        for index in 0..level.block_count() {
            let selection = level.block_selection(index).unwrap();
            prop_assert!(selection.check(&shape).is_ok());
            prop_assert!(!selection.is_empty());
            prop_assert_eq!(level.block_index(&level.grid_position(index).unwrap()), index);
            for at in positions(&selection) {
                prop_assert!(seen.insert(at), "an element lies in two blocks");
            }
        }
        prop_assert_eq!(seen.len() as u64, shape.iter().product::<u64>());
        prop_assert!(level.block_selection(level.block_count()).is_err());
    }

    #[test]
    fn cutting_by_the_grid_loses_nothing(
        start in 0u64..9, count in 1u64..30, step in 1u64..9, block in 1u64..12,
    ) {
        let range = AxisRange { start, count, step };
        let pieces = &cut_by_grid(&Selection::new(vec![range]).unwrap(), &[block])[0];
        let mut next = 0;
        for &(position, first, count) in pieces {
            prop_assert_eq!(first, next);
            prop_assert!(count > 0);
            for i in first..first + count {
                prop_assert_eq!(range.index(i) / block, position);
            }
            next += count;
        }
        prop_assert_eq!(next, count);
        let selection = Selection::new(vec![range]).unwrap();
        let level = level(&[range.end()], &[block]);
        prop_assert!(BlockParts::touched(&selection, &level) >= pieces.len() as u64);
        let (_target, region) = Target::new(&[count], 1).unwrap();
        let found = BlockParts::new(&selection, &level, 1, region).unwrap().map(|p| p.index);
        prop_assert!(found.eq(pieces.iter().map(|p| p.0)));
        prop_assert!(pieces.windows(2).all(|w| w[0].0 < w[1].0));
    }

    #[test]
    fn chosen_blocks_keep_their_promises(
        shape in prop::collection::vec(0u64..100_000, 0..6),
        element in 0usize..ElementType::ALL.len(),
        time_first: bool,
        chunk in prop::option::of(prop::collection::vec(1u64..300, 6)),
    ) {
        let dtype = DType::native(ElementType::ALL[element]);
        let kinds: Vec<AxisKind> = (0..shape.len()).map(|axis| match shape.len() - 1 - axis {
            0 => AxisKind::X,
            1 => AxisKind::Y,
            2 => AxisKind::Z,
            _ if time_first => AxisKind::Time,
            _ => AxisKind::Channel,
        }).collect();
        let chunk = chunk.map(|c| c[..shape.len()].to_vec());
        let block = choose_blocks(&shape, &kinds, dtype, chunk.as_deref());
        let bytes = |b: &[u64]| b.iter().product::<u64>() * dtype.size_bytes() as u64;
        prop_assert_eq!(block.len(), shape.len());
        prop_assert!(bytes(&block) <= MAX_BLOCK_BYTES);
        for axis in 0..shape.len() {
            prop_assert!(block[axis] >= 1 && block[axis] <= shape[axis].max(1));
            prop_assert!(kinds[axis].is_spatial() || block[axis] == 1);
        }
        let spatial = |axis: &usize| kinds[*axis].is_spatial();
        let is_whole = (0..shape.len()).filter(spatial).all(|a| block[a] >= shape[a]);
        prop_assert!(is_whole || bytes(&block) * 2 > MIN_BLOCK_BYTES, "{block:?} of {shape:?} is small");
        if let Some(chunk) = chunk {
            let chunk: Vec<u64> = (0..shape.len())
                .map(|a| if kinds[a].is_spatial() { chunk[a].min(shape[a].max(1)) } else { 1 })
                .collect();
            if bytes(&chunk) <= MAX_BLOCK_BYTES {
                for axis in 0..shape.len() {
                    let aligned = block[axis].is_multiple_of(chunk[axis]) || block[axis] == shape[axis].max(1);
                    prop_assert!(aligned, "{block:?} of {shape:?} is no multiple of {chunk:?}");
                }
            }
        }
    }

    #[test]
    fn coarsened_maps_agree_with_their_voxels(scale in prop::array::uniform3(1u32..5), p in prop::array::uniform3(-9i32..9)) {
        let fine = Affine([[0.5, 0.1, 0.0, 7.0], [0.0, -2.0, 0.25, -3.0], [1.0, 0.0, 3.0, 0.5]]);
        let scale = scale.map(f64::from);
        let shift = scale.map(|s| (s - 1.0) / 2.0);
        let p = p.map(f64::from);
        let coarse = fine.coarsened(scale, shift).apply(p);
        let direct = fine.apply([0, 1, 2].map(|i| scale[i] * p[i] + shift[i]));
        prop_assert!((0..3).all(|i| (coarse[i] - direct[i]).abs() < 1e-9));
    }
}

#[test]
fn late_writers_are_safe() {
    let (target, region) = Target::new(&[64, 1000], 8).unwrap();
    let rows = region.grid(&[vec![1; 64], vec![1000]]).unwrap();
    let write = |mut row: Region| {
        let bytes = vec![7u8; row.size_bytes()];
        row.write_all(&bytes).unwrap();
    };
    let (early, late) = {
        let mut rows = rows;
        let late = rows.split_off(32);
        (rows, late)
    };
    let spawn = |rows: Vec<Region>| {
        std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || rows.into_iter().for_each(write))
            .unwrap()
    };
    spawn(early).join().unwrap();
    let target = target.try_into_vec().expect_err("writers remain");
    // The asker goes away; the late writer keeps the memory alive and frees it.
    let writer = spawn(late);
    drop(target);
    writer.join().unwrap();
}

#[test]
fn regions_refuse_what_does_not_fit() {
    let (_target, region) = Target::new(&[2, 3], 2).unwrap();
    let (_left, mut right) = region.split(1, 1);
    assert!(right.write_all(&[0; 7]).is_err());
    assert!(right.write_strided(&[0; 5], &[4, 2]).is_err());
    assert!(right.write_strided(&[0; 64], &[usize::MAX, 2]).is_err());
    assert!(right.write_at(7, &[0; 2]).is_err());
    assert!(right.grid(&[vec![2], vec![1]]).is_err());
    let (_target, mut region) = Target::new(&[2, 3], 2).unwrap();
    assert!(region.write_at(11, &[0; 2]).is_err());
    assert!(region.write_at(usize::MAX, &[0; 2]).is_err());
    assert!(Target::new(&[u64::MAX, u64::MAX], 8).is_err());
    assert!(Target::new(&[1 << 61], 8).is_err());
}

#[test]
fn pieces_land_in_the_gaps_of_a_region() {
    for cut in 0..=12 {
        let (target, region) = Target::new(&[2, 3, 4], 1).unwrap();
        // Rows of the middle column of planes, two of four elements each: 2 x 3 x 2.
        let (left, right) = region.split(2, 1);
        let (mut middle, rest) = right.split(2, 2);
        let bytes: Vec<u8> = (1..=12).collect();
        middle.write_at(cut, &bytes[cut..]).unwrap();
        middle.write_at(0, &bytes[..cut]).unwrap();
        drop((left, middle, rest));
        let rows = (0..6).flat_map(|row| [0, 2 * row + 1, 2 * row + 2, 0]);
        assert_eq!(target.into_vec().unwrap(), rows.collect::<Vec<u8>>());
    }
}

#[test]
fn a_lent_region_comes_back_when_nobody_writes_it_any_more() {
    let (target, region) = Target::new(&[4, 2], 1).unwrap();
    let (kept, region) = region.split(0, 1);
    let (outer, lent) = region.lend();
    let (inner, mut lent_on) = lent.lend();
    lent_on.write_all(&[1; 6]).unwrap();
    let (rest, mut row) = lent_on.split(0, 2);
    let outer = outer.try_end().expect_err("both parts of it may still be written");
    drop(inner);
    drop(rest);
    let outer = outer.try_end().expect_err("lent on, and a part is left");
    row.write_all(&[2; 2]).unwrap();
    drop(row);
    let mut back = outer.try_end().expect("nobody is left");
    assert_eq!(back.shape(), [3, 2]);
    let (first, rest) = back.split(0, 1);
    drop(rest);
    back = first;
    back.write_all(&[3; 2]).unwrap();
    drop((kept, back));
    assert_eq!(target.into_vec().unwrap(), [0, 0, 3, 3, 1, 1, 2, 2]);
}

#[test]
fn a_loan_that_is_forgotten_keeps_its_bytes_from_the_outer_lender() {
    let (_target, region) = Target::new(&[2], 1).unwrap();
    let (outer, lent) = region.lend();
    let (inner, mut lent_on) = lent.lend();
    let inner = inner.try_end().expect_err("lent on");
    drop(inner);
    let outer = outer.try_end().expect_err("the innermost region is still there");
    lent_on.write_all(&[1; 2]).unwrap();
    drop(lent_on);
    assert!(outer.try_end().is_ok());
}

#[test]
fn each_of_many_results_is_read_when_its_own_writers_are_gone() {
    let selections = [
        Selection::parse("1:3, ::2", &[5, 4]).unwrap(),
        Selection::parse("4, 1", &[5, 4]).unwrap(),
        Selection::parse("2:2, :", &[5, 4]).unwrap(),
    ];
    let mut parts = Target::many(selections.iter(), 2).unwrap();
    let (last, nothing) = parts.pop().unwrap();
    let (second, mut region) = parts.pop().unwrap();
    let (first, left_alone) = parts.pop().unwrap();
    assert_eq!(
        (left_alone.shape(), region.shape(), nothing.shape()),
        (&[2, 2][..], &[1, 1][..], &[0, 4][..])
    );
    assert!(region.together_mut().is_some_and(|bytes| bytes == [0; 2]));
    region.write_all(&[7; 2]).unwrap();
    drop((region, nothing));
    assert_eq!(second.into_bytes().unwrap().as_ref(), [7; 2], "though the first may still be written");
    assert_eq!(last.into_bytes().unwrap().as_ref(), [0; 0]);
    let (row, mut other) = left_alone.split(0, 1);
    drop(row);
    other.write_all(&[1, 2, 3, 4]).unwrap();
    let kind = first.into_bytes().unwrap_err().kind();
    assert_eq!(kind, ErrorKind::Internal, "a part of it may still be written");
    let (_target, region) = Target::new(&[2, 2], 1).unwrap();
    let (mut column, _other) = region.split(1, 1);
    assert!(column.together_mut().is_none(), "a column has gaps");
}

#[test]
fn many_results_that_no_memory_holds_are_refused() {
    let huge = Selection::of_box(&[0], &[u64::MAX / 2]);
    let all = [huge.clone(), huge];
    assert_eq!(Target::many(all.iter(), 8).unwrap_err().kind(), ErrorKind::TooLarge);
}
