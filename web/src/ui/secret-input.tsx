import { PasswordInput, type PasswordInputProps } from '@mantine/core';

/** A field for a credential. Mantine's own does not report its error to screen readers. */
export function SecretInput(props: PasswordInputProps) {
  return (
    <PasswordInput
      {...props}
      aria-invalid={props.error ? true : undefined}
      visibilityToggleButtonProps={{ 'aria-label': 'Show what was typed' }}
    />
  );
}
