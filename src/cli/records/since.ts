import { InvalidArgumentError } from 'commander';
import { AppError } from '../../errors.ts';
import { brokenOff } from '../connection/answer.ts';

/** A point in time: epoch ms, or so many ms before now. */
export type Since = { at: number } | { beforeNowMs: number };

const unitsMs: { [unit: string]: number } = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `15m` or `2026-11-22T10:00:00Z`. @throws InvalidArgumentError, which says what is allowed */
export function sinceOf(text: string): Since {
  const [, count, unit = ''] = /^([1-9]\d{0,4})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return { beforeNowMs: Number(count) * (unitsMs[unit] ?? 0) };
  const at = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new InvalidArgumentError(
      'allowed: a span such as 30s, 15m, 2h or 3d, or a time such as 2026-11-22T10:00:00Z',
    );
  return { at };
}

const patienceMs = 10_000;

/** The time of the service in epoch ms, so that the clock of this machine does not matter. @throws AppError */
export async function serviceTime(url: string): Promise<number> {
  try {
    const { headers, body } = await fetch(`${url}/livez`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(patienceMs),
    });
    await body?.cancel();
    const at = Date.parse(headers.get('date') ?? '');
    if (!Number.isNaN(at)) return at;
  } catch (error) {
    throw brokenOff(url, error);
  }
  throw new AppError('unavailable', `${url} does not say what time it is; give --since as a time`);
}
