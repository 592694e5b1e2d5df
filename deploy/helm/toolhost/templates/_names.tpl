{{- define "toolhost.labels" -}}
app.kubernetes.io/name: toolhost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "toolhost.issuerPort" -}}
{{- regexFind "[0-9]+$" (regexFind "^https://[^/]+:[0-9]+" .Values.oidc.issuer) -}}
{{- end }}
{{- define "toolhost.host" -}}
{{- regexFind "^[^/]+" (trimPrefix "https://" .Values.baseUrl) -}}
{{- end }}
{{- define "toolhost.path" -}}
{{- regexFind "/.*$" (trimPrefix "https://" .Values.baseUrl) -}}
{{- end }}
