import type { WorkParty } from '../domain/work/fair-queue.ts';

type Counted = { workspaceId: string; party?: WorkParty | undefined; isLong: boolean };

/** Numbers of jobs, of each workspace, of the strangers of each, and of those that take long. */
export class JobCounts {
  readonly #ofWorkspace = new Map<string, number>();
  readonly #ofStrangers = new Map<string, number>();
  #long = 0;

  add(job: Counted): void {
    this.#count(job, 1);
  }

  remove(job: Counted): void {
    this.#count(job, -1);
  }

  of(workspaceId: string): number {
    return this.#ofWorkspace.get(workspaceId) ?? 0;
  }

  /** Of the strangers of a workspace. */
  ofStrangers(workspaceId: string): number {
    return this.#ofStrangers.get(workspaceId) ?? 0;
  }

  get long(): number {
    return this.#long;
  }

  get all(): number {
    return [...this.#ofWorkspace.values()].reduce((sum, count) => sum + count, 0);
  }

  #count({ workspaceId, party, isLong }: Counted, change: number): void {
    changeBy(this.#ofWorkspace, workspaceId, change);
    if (party?.isStranger) changeBy(this.#ofStrangers, workspaceId, change);
    if (isLong) this.#long += change;
  }
}

function changeBy(counts: Map<string, number>, id: string, change: number): void {
  const count = (counts.get(id) ?? 0) + change;
  if (count > 0) counts.set(id, count);
  else counts.delete(id);
}
