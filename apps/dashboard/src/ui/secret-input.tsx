import { PasswordInput, type PasswordInputProps } from '@mantine/core';

/** Input for a credential. Mantine's own does not report errors to screen readers. */
export function SecretInput(props: PasswordInputProps) {
  return (
    <PasswordInput
      autoComplete="new-password"
      {...props}
      aria-invalid={props.error ? true : undefined}
      visibilityToggleButtonProps={{ 'aria-label': 'Show value' }}
    />
  );
}
