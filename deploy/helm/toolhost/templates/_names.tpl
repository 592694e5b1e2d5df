{{- define "toolhost.labels" -}}
app.kubernetes.io/name: toolhost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "toolhost.host" -}}
{{- regexFind "^[^/]+" (trimPrefix "https://" .Values.baseUrl) -}}
{{- end }}
{{- define "toolhost.path" -}}
{{- regexFind "/.*$" (trimPrefix "https://" .Values.baseUrl) -}}
{{- end }}
