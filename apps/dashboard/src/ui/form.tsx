import type { ComponentProps, FormEvent } from 'react';

type Props = Omit<ComponentProps<'form'>, 'onSubmit'> & { onSubmit: (event: FormEvent<HTMLFormElement>) => unknown };

/** Form that its handler submits. The service validates the input, and the browser does not. */
export function Form({ onSubmit, ...props }: Props) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSubmit(event);
  };
  return <form noValidate onSubmit={submit} {...props} />;
}
