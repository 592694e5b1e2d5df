import { type SuggestionBudget, suggestName } from '@toolhost/errors/problems';

/** The path of a view follows that of its server, so a view cannot have the name of another path. */
export const reservedViewNames = [
  'authorize',
  'callback',
  'consent',
  'introspect',
  'jwks',
  'login',
  'logout',
  'register',
  'revoke',
  'server-card',
  'token',
  'userinfo',
] as const;

const namePattern = /^[a-z0-9][a-z0-9-]{0,39}$/;
const reservedNames: ReadonlySet<string> = new Set(reservedViewNames);

/** Returns the reason why a view cannot have this name, or undefined. */
export function getViewNameProblem(name: string, suggestionBudget: SuggestionBudget): string | undefined {
  if (reservedNames.has(name))
    return `"${name}" is reserved for another page of the server; choose another name for the view`;
  if (namePattern.test(name)) return undefined;
  const validName = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
  const suggestion = suggestName(
    name,
    namePattern.test(validName) && !reservedNames.has(validName) ? [validName] : [],
    suggestionBudget,
  );
  return `not a valid view name; allowed: 1 to 40 lowercase letters, digits, and hyphens, beginning with a letter or digit${suggestion}`;
}
