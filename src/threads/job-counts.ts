type Counted = { workspaceId: string; isLong: boolean };

/** Numbers of jobs, of each workspace and of those that take long. */
export class JobCounts {
  readonly #ofWorkspace = new Map<string, number>();
  #long = 0;

  add({ workspaceId, isLong }: Counted): void {
    this.#ofWorkspace.set(workspaceId, this.of(workspaceId) + 1);
    if (isLong) this.#long++;
  }

  remove({ workspaceId, isLong }: Counted): void {
    const left = this.of(workspaceId) - 1;
    if (left > 0) this.#ofWorkspace.set(workspaceId, left);
    else this.#ofWorkspace.delete(workspaceId);
    if (isLong) this.#long--;
  }

  of(workspaceId: string): number {
    return this.#ofWorkspace.get(workspaceId) ?? 0;
  }

  get long(): number {
    return this.#long;
  }

  get all(): number {
    return [...this.#ofWorkspace.values()].reduce((sum, count) => sum + count, 0);
  }
}
