/** Checks out another version of the product, and lists regressions since then. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../files.ts';
import type { Verdict } from './audit.ts';
import { getWireAgreement } from './report.ts';

const run = promisify(execFile);

/** Unpacks the files of a commit into a new folder, with the dependencies of this checkout. */
export async function unpackCommit(commit: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'toolhost-audit-commit-'));
  const checkout = join(folder, 'checkout');
  await mkdir(checkout);
  await run('git', ['archive', '--format=tar', `--output=${join(folder, 'files.tar')}`, commit], { cwd: root });
  await run('tar', ['-xf', join(folder, 'files.tar'), '-C', checkout]);
  await symlink(join(root, 'node_modules'), join(checkout, 'node_modules'));
  return checkout;
}

const ranks = ['whole', 'loosened', 'partial', 'skipped'];

/** Returns operations whose request or outcome was better before. */
export function listRegressions(before: readonly Verdict[], now: readonly Verdict[]): string[] {
  const byKey = new Map(before.map((verdict) => [`${verdict.document} ${verdict.operation}`, verdict]));
  return now.flatMap((verdict) => {
    const key = `${verdict.document} ${verdict.operation}`;
    const previous = byKey.get(key);
    const reasons = previous ? findReasons(previous, verdict) : [];
    return reasons.length > 0 ? [`${key}: ${reasons.join('; ')}`] : [];
  });
}

function findReasons(previous: Verdict, verdict: Verdict): string[] {
  const [was, is] = [getWireAgreement(previous), getWireAgreement(verdict)];
  const reasons: string[] = [];
  if ((was === 'same' || was === 'explained') && is === 'different')
    reasons.push(`its request no longer agrees: ${formatWire(verdict)}`);
  const { outcome } = verdict;
  const isWorse = ranks.indexOf(outcome.expected) > ranks.indexOf(previous.outcome.expected);
  if (isWorse) reasons.push(`its outcome changed from ${previous.outcome.expected} to ${outcome.expected}`);
  if (previous.outcome.expected === previous.outcome.reported && outcome.expected !== outcome.reported)
    reasons.push(`its outcome no longer agrees: reported ${outcome.reported}, expected ${outcome.expected}`);
  return reasons;
}

function formatWire({ wire }: Verdict): string {
  if (wire?.kind === 'refused') return `the call is rejected (${wire.reason})`;
  return wire?.kind === 'compared' ? wire.differences.map(({ id }) => id).join(', ') : 'it has no tool';
}
