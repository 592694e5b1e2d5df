type OfWorkspace = { workspaceId: string };

/**
 * Lets the workspaces take turns: one item of a workspace at a time, and first the items of those that took the least
 * time until now. So slow items delay those of their own workspace. `find` gives one item of each workspace that is not
 * in `except`. The result is a lane, which may run several times at once; it ends when `find` has nothing for it.
 */
export function turnsOfWorkspaces<Item extends OfWorkspace>(
  find: (except: Iterable<string>) => Promise<Item[]>,
  now: () => number,
): (run: (item: Item) => Promise<void>) => Promise<void> {
  const running = new Set<string>();
  const spentMs = new Map<string, number>();
  let waiting: Item[] = [];
  let finding: Promise<void> | undefined;

  /** Lanes that have nothing at the same time share one query, so that none begins what another one has begun. */
  function findMore(): Promise<void> {
    finding ??= find(running)
      .then((found) => {
        waiting = found.sort((one, other) => spentBy(one) - spentBy(other));
      })
      .finally(() => {
        finding = undefined;
      });
    return finding;
  }
  const spentBy = ({ workspaceId }: Item) => spentMs.get(workspaceId) ?? 0;

  return async (run) => {
    for (;;) {
      if (waiting.length === 0) await findMore();
      const item = waiting.shift();
      if (!item) return;
      const { workspaceId } = item;
      // Another lane may have begun an item of this workspace while this one was being found.
      if (running.has(workspaceId)) continue;
      const from = now();
      running.add(workspaceId);
      try {
        await run(item);
      } finally {
        running.delete(workspaceId);
        spentMs.set(workspaceId, spentBy(item) + now() - from);
      }
    }
  };
}
