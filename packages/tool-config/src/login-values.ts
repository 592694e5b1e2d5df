import { createHash } from 'node:crypto';
import { containsPlainCredential } from '@toolhost/credentials/own-credentials';
import { createPatternMatcher } from '@toolhost/json-schema/pattern-match';
import { maxEventLoopSteps, StepBudget, StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import { isHostLabel } from './http/origin-template.ts';
import { getMaxLength, type LoginField } from './login.ts';

/** Result of checking a value that a person entered: the value to store, or the problem, as a sentence for them. */
export type CheckedValue = { value: string } | { problem: string };

/**
 * Checks and trims a value. An empty one is valid only for an optional field, and is then stored as no value. A value that
 * is part of a host must be one label, whatever its pattern allows.
 */
export function checkLoginValue(field: LoginField & { isInHost?: boolean }, text: string): CheckedValue {
  const value = text.trim();
  const maxLength = getMaxLength(field);
  if (value === '') return field.optional ? { value } : { problem: 'Enter a value.' };
  if (value.length > maxLength)
    return { problem: `The value has ${value.length} characters; at most ${maxLength} are allowed.` };
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value))
    return { problem: 'The value contains a line break or a control character; remove it.' };
  if (containsPlainCredential(value))
    return { problem: 'This is an API key or a token of this service. Enter the value that the API issued to you.' };
  if (field.isInHost && !isHostLabel(value))
    return { problem: 'The value is part of a host name: 1 to 63 letters, digits, and inner hyphens, without a dot.' };
  if (field.pattern !== undefined && !matchesWholly(field.pattern, value))
    return { problem: `The value does not have the expected format (${field.pattern}). Check that it is complete.` };
  return { value };
}

/** Returns true if a pattern matches the whole value. A match that takes too many steps counts as none. */
function matchesWholly(pattern: string, value: string): boolean {
  try {
    return createPatternMatcher(`^(?:${pattern})$`)(value, new StepBudget(maxEventLoopSteps));
  } catch (error) {
    if (error instanceof StepLimitExceeded) return false;
    throw error;
  }
}

/**
 * Returns the hash of what a person agrees to when they enter values: the fields, and the hosts that receive each value.
 */
export function getValuesAgreement(
  fields: readonly LoginField[],
  hosts: ReadonlyMap<string, readonly string[]>,
): string {
  const agreed = fields.map(({ name }) => [name, ...(hosts.get(name) ?? [])]);
  return createHash('sha256').update(JSON.stringify(agreed)).digest('base64url');
}
