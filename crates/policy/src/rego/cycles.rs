//! Which nodes of a graph can come back to themselves.

/// A graph by its edges: from each node, named by its number, to others.
#[derive(Default)]
pub(super) struct Graph {
    edges: Vec<Vec<usize>>,
}

impl Graph {
    /// Adds an edge; an end that is new is added, too.
    pub(super) fn join(&mut self, from: usize, to: usize) {
        let size = self.edges.len().max(from.max(to) + 1);
        self.edges.resize_with(size, Vec::new);
        if let Some(edges) = self.edges.get_mut(from) {
            edges.push(to);
        }
    }

    /// Whether each node is one of several that all reach each other. An edge from a node to itself does
    /// not count.
    ///
    /// Tarjan's algorithm, in time linear in the edges and without calling itself: policies of others are
    /// looked at with it.
    #[expect(
        clippy::indexing_slicing,
        reason = "`join` makes room for both ends of every edge"
    )]
    pub(super) fn cyclic(&self) -> Vec<bool> {
        let size = self.edges.len();
        let mut cyclic = vec![false; size];
        // When a node was met first, from 1, and the earliest of those it reaches that are still open.
        let (mut met, mut earliest) = (vec![0_usize; size], vec![0_usize; size]);
        let mut is_open = vec![false; size];
        let (mut open, mut way, mut clock) = (Vec::new(), Vec::new(), 0);
        for start in 0..size {
            if met[start] == 0 {
                way.push((start, 0));
            }
            while let Some((node, next)) = way.pop() {
                if next == 0 {
                    clock += 1;
                    (met[node], earliest[node]) = (clock, clock);
                    is_open[node] = true;
                    open.push(node);
                }
                if let Some(&to) = self.edges[node].get(next) {
                    way.push((node, next + 1));
                    if met[to] == 0 {
                        way.push((to, 0));
                    } else if is_open[to] {
                        earliest[node] = earliest[node].min(met[to]);
                    }
                    continue;
                }
                if let Some(&(before, _)) = way.last() {
                    earliest[before] = earliest[before].min(earliest[node]);
                }
                if earliest[node] == met[node] {
                    let begin = open.iter().rposition(|one| *one == node);
                    let together = open.split_off(begin.unwrap_or_default());
                    for one in &together {
                        is_open[*one] = false;
                        cyclic[*one] = together.len() > 1;
                    }
                }
            }
        }
        cyclic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_cyclic_if_and_only_if_it_reaches_itself() {
        // Every graph of four nodes without edges from a node to itself.
        let pairs: Vec<(usize, usize)> = (0..4)
            .flat_map(|from| (0..4).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .collect();
        for choice in 0..1_u32 << pairs.len() {
            let mut graph = Graph::default();
            graph.edges.resize_with(4, Vec::new);
            let mut reach = [[false; 4]; 4];
            for (number, (from, to)) in pairs.iter().enumerate() {
                if choice >> number & 1 == 1 {
                    graph.join(*from, *to);
                    reach[*from][*to] = true;
                }
            }
            for (by, from, to) in (0..64).map(|all| (all / 16, all / 4 % 4, all % 4)) {
                reach[from][to] |= reach[from][by] && reach[by][to];
            }
            let expected: Vec<bool> = (0..4).map(|node| reach[node][node]).collect();
            assert_eq!(graph.cyclic(), expected, "{choice:b}");
        }
    }

    #[test]
    fn long_ways_do_not_end_the_stack() {
        let mut graph = Graph::default();
        for node in 0..100_000 {
            graph.join(node, node + 1);
        }
        assert!(!graph.cyclic().contains(&true));
        graph.join(100_000, 0);
        assert!(!graph.cyclic().contains(&false));
    }
}
