// Show the OpenAPI document. Requests with the session need the CSRF token.
const page = document.getElementById("swagger-ui").dataset;

SwaggerUIBundle({
  url: page.schema,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  requestInterceptor: (request) => {
    if (request.method && request.method !== "GET") request.headers["X-CSRFToken"] = page.csrfToken;
    return request;
  },
});
