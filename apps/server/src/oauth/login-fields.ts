import { checkLoginValue } from '@toolhost/tool-config/login-values';
import type { LoginFieldUse } from './people.ts';
import type { ValuesState } from './person-values.ts';

/** Returns the name of the input of a field in a form. */
export function getInputName({ name }: Pick<LoginFieldUse, 'name'>): string {
  return `field.${name}`;
}

/** Returns the names of the fields that a form asks for: those without a usable value, or all of them. */
export function getAskedFields(
  fields: readonly LoginFieldUse[],
  { isNew, missing, refused }: ValuesState,
  asksAll: boolean,
): string[] {
  return fields
    .filter(({ name }) => asksAll || isNew || missing.includes(name) || refused.includes(name))
    .map(({ name }) => name);
}

/**
 * Reads the values of a form. Only fields that were asked are read. An empty input of a field with a stored value that
 * the API has not refused leaves that value unchanged.
 */
export function readFields(
  asked: readonly LoginFieldUse[],
  form: URLSearchParams,
  { values: stored, refused }: ValuesState,
): { values: Record<string, string>; problems: Record<string, string> } {
  const values: Record<string, string> = { ...stored };
  const problems: Record<string, string> = {};
  for (const field of asked) {
    const { name } = field;
    const text = form.get(getInputName(field)) ?? '';
    const isStored = Object.hasOwn(stored, name) && !refused.includes(name);
    if (text.trim() === '' && isStored && field.secret !== false) continue;
    const checked = checkLoginValue(field, text);
    if ('problem' in checked) problems[name] = checked.problem;
    else if (checked.value === '') delete values[name];
    else values[name] = checked.value;
  }
  return { values, problems };
}
