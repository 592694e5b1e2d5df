import { z } from 'zod';
import { type KeyLimits, type LimitName, mostCallQuota, mostLimit, type SetLimits } from '../domain/limits.ts';

/** The public names of the limits, in display order. */
export const limitFields = {
  calls_per_second: { name: 'callsPerSecond', most: mostLimit, meaning: 'Calls a second' },
  concurrent_calls: { name: 'concurrentCalls', most: mostLimit, meaning: 'Calls at once' },
  calls_per_minute: { name: 'callsPerMinute', most: mostCallQuota, meaning: 'Calls a minute (UTC)' },
  calls_per_day: { name: 'callsPerDay', most: mostCallQuota, meaning: 'Calls a day (UTC)' },
} as const satisfies Record<string, { name: LimitName; most: number; meaning: string }>;

export type LimitField = keyof typeof limitFields;
export const limitFieldNames = Object.keys(limitFields) as LimitField[];
/** Limits that a single key may have. */
export const keyFieldNames = ['calls_per_second', 'calls_per_minute', 'calls_per_day'] as const;
type KeyField = (typeof keyFieldNames)[number];

export type LimitInputs = { [Field in LimitField]?: number | null | undefined };

const bounded = (field: LimitField) => z.int().min(1).max(limitFields[field].most);

const settable = (field: LimitField) => {
  const without =
    field.startsWith('calls_per_') && field !== 'calls_per_second' ? 'is no quota' : 'goes back to the default';
  return bounded(field).nullable().optional().describe(`${limitFields[field].meaning}; null ${without}.`);
};

/** Inputs for the limits of a server or a workspace. Absent limits stay as they are. */
export const limitInputs = {
  calls_per_second: settable('calls_per_second'),
  concurrent_calls: settable('concurrent_calls'),
  calls_per_minute: settable('calls_per_minute'),
  calls_per_day: settable('calls_per_day'),
};

const ofKey = (field: KeyField) => bounded(field).optional().describe(`${limitFields[field].meaning} with this key.`);

export const keyLimitInputs = {
  calls_per_second: ofKey('calls_per_second'),
  calls_per_minute: ofKey('calls_per_minute'),
  calls_per_day: ofKey('calls_per_day'),
};

/** Converts public fields to stored limits, without those that are null or absent. */
export function limitsFrom(input: LimitInputs): SetLimits {
  const limits: SetLimits = {};
  for (const field of limitFieldNames) {
    const value = input[field];
    if (typeof value === 'number') limits[limitFields[field].name] = value;
  }
  return limits;
}

/** Converts stored limits to public fields. */
export function fieldsOf(limits: SetLimits): { [Field in LimitField]?: number } {
  const fields: { [Field in LimitField]?: number } = {};
  for (const field of limitFieldNames) {
    const value = limits[limitFields[field].name];
    if (value !== undefined) fields[field] = value;
  }
  return fields;
}

/** The limits after a change: a number replaces a limit, null removes it. */
export function changedLimits(before: SetLimits, input: LimitInputs): SetLimits {
  return limitsFrom({
    ...fieldsOf(before),
    ...Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)),
  });
}

export function isSameLimits(a: SetLimits, b: SetLimits): boolean {
  return limitFieldNames.every((field) => a[limitFields[field].name] === b[limitFields[field].name]);
}

/** The limits of a key, or undefined when it has none. */
export function keyLimitsFrom(input: LimitInputs): KeyLimits | undefined {
  const { concurrentCalls: _, ...limits } = limitsFrom(input);
  return Object.keys(limits).length > 0 ? limits : undefined;
}
