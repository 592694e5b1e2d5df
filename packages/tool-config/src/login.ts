import { z } from 'zod';
import { secretNamePattern } from './http/placeholders.ts';
import { singleLineText } from './tool.ts';

export const maxLoginFields = 10;
export const maxAllowEntries = 100;
export const maxLoginViews = 50;
export const maxLoginClients = 50;
const defaultMaxLength = 4096;

export const allowSchema = z.strictObject({
  members: z.boolean().optional().describe('Members of the workspace may log in.'),
  domains: z
    .array(z.string().min(1).max(253))
    .max(maxAllowEntries)
    .optional()
    .describe('People whose verified email address has one of these domains may log in.'),
  groups: z
    .array(z.string().min(1).max(256))
    .max(maxAllowEntries)
    .optional()
    .describe('People in one of these groups of the identity provider may log in.'),
});

export const viewRuleSchema = z.strictObject({
  group: z.string().min(1).max(256).optional().describe('Group of the identity provider. Everyone if absent.'),
  view: z.string().min(1).max(100).describe('Name of the view that these people get.'),
});

export const loginFieldSchema = z.strictObject({
  name: z
    .string()
    .regex(secretNamePattern, 'allowed: a letter or _, then up to 63 letters, digits and _')
    .describe('Name of the value. {{NAME}} in the configuration is replaced with the value of the person who calls.'),
  label: singleLineText(60).describe('Label of the input.'),
  help: z.string().max(2048).optional().describe('https URL of a page that explains where people find the value.'),
  secret: z.boolean().optional().describe('true (default): the value is entered as a password and never shown again.'),
  optional: z.boolean().optional().describe('true: people may leave the input empty.'),
  default: z.string().min(1).max(500).optional().describe('Value that the input contains at first. Not with secret.'),
  pattern: z.string().min(1).max(500).optional().describe('Regular expression that the whole value must match.'),
  max_length: z
    .int()
    .min(1)
    .max(8192)
    .optional()
    .describe(`Maximum length in characters. Defaults to ${defaultMaxLength}.`),
});

/** Login of people with the operator's identity provider, and the values that they bring (docs/logins.md). */
export const loginSchema = z.strictObject({
  allow: allowSchema
    .optional()
    .describe('People who may log in; one match is enough. Without oauth, defaults to members of the workspace.'),
  clients: z
    .array(z.string().min(1).max(2048))
    .min(1)
    .max(maxLoginClients)
    .optional()
    .describe(
      'MCP clients that may log in, each as the URL of its metadata document or as one exact redirect URI. All if absent. The command line, the doctor, and the login test of the dashboard always may.',
    ),
  views: z
    .array(viewRuleSchema)
    .min(1)
    .max(maxLoginViews)
    .optional()
    .describe('Views by group. The first entry that matches a person counts; without a match, the login is refused.'),
  fields: z.array(loginFieldSchema).min(1).max(maxLoginFields).optional().describe('Values that each person brings.'),
});

export type LoginRules = z.infer<typeof loginSchema>;
export type LoginField = z.infer<typeof loginFieldSchema>;

export function isSecretField({ secret }: LoginField): boolean {
  return secret !== false;
}

export function getMaxLength({ max_length }: LoginField): number {
  return max_length ?? defaultMaxLength;
}
