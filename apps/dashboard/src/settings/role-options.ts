import type { Role } from '../api-types.ts';

export const roleOptions: { value: Role; label: string }[] = [
  { value: 'owner', label: 'Owner' },
  { value: 'editor', label: 'Editor' },
  { value: 'viewer', label: 'Viewer' },
];

export const formatRole = (role: Role) => roleOptions.find(({ value }) => value === role)?.label;
