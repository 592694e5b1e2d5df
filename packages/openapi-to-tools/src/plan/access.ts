import { invalidInputError } from '@toolhost/errors/errors';
import { type LoginRules, maxLoginFields } from '@toolhost/tool-config/login';
import type { Question } from '../plan-outline.ts';
import type { CredentialFields, PersonalField } from './authentication-fields.ts';
import type { ImportChoices } from './choices.ts';

/** Answers to the question how callers authenticate. */
export const accessAnswers = ['key', 'login', 'person'] as const;

export function isAccessAnswer(answer: string): boolean {
  return accessAnswers.some((allowed) => allowed === answer);
}

const accessQuestion: Question = {
  name: 'access',
  required: false,
  question: 'How do callers authenticate? claude.ai and ChatGPT can only log in.',
  options: [
    { value: 'key', meaning: 'API key with one stored credential' },
    { value: 'login', meaning: 'login with one stored credential' },
    { value: 'person', meaning: "login with each person's own credential" },
  ],
  assumed: 'key',
};

/** Configuration fields with the login that was chosen, and the question if people can enter the credential. */
type Access = { fields: CredentialFields & { login?: LoginRules }; accessQuestions: Question[] };

/**
 * Adds the login that was chosen. Secrets that each person brings are fields of the login and are not stored.
 * @throws AppError invalid if each person is to bring a credential that cannot be entered
 */
export function resolveAccess(fields: CredentialFields, { answers = {}, existingKeys }: ImportChoices): Access {
  const { oauth, personalFields, secrets } = fields;
  const canBeEntered = oauth === undefined && secrets.length > 0 && personalFields.length === secrets.length;
  const accessQuestions = canBeEntered ? [accessQuestion] : [];
  // The provider of an OAuth application already has a login, and a re-import changes no access.
  if (oauth !== undefined || existingKeys !== undefined) return { fields, accessQuestions };
  if (answers.access === 'login') return { fields: { ...fields, login: {} }, accessQuestions };
  if (answers.access !== 'person') return { fields, accessQuestions };
  if (!canBeEntered || personalFields.length > maxLoginFields) {
    const message = 'people cannot enter the credential of this API; allowed: key, login';
    throw invalidInputError([{ path: 'answers.access', message }], 'The document was not imported');
  }
  const login = { fields: withDistinctLabels(personalFields) };
  return { fields: { ...fields, secrets: [], login }, accessQuestions };
}

/** Adds the name to labels that occur more than once. */
function withDistinctLabels(fields: readonly PersonalField[]): PersonalField[] {
  const isRepeated = ({ label }: PersonalField) => fields.filter((field) => field.label === label).length > 1;
  return fields.map((field) =>
    isRepeated(field) ? { ...field, label: `${field.label} ${field.name}`.slice(0, 60) } : field,
  );
}
