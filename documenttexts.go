package main

import (
	"fmt"
)

// sentenceTexts are the faults and warnings of documents and the faults of fields in English, by
// their formats in Spanish, with the same verbs in the same order.
var sentenceTexts = map[string]string{
	"falta":      "it is missing",
	"está vacío": "it is empty",
	"falta %q; un programa no se puede quitar":                 "%q is missing, and a program cannot be removed",
	"campo desconocido":                                        "unknown field",
	"contiene caracteres no permitidos":                        "it has characters that are not allowed",
	"el primer nivel empieza en 0":                             "the first tier begins at 0",
	"demasiados niveles":                                       "it is nested too deeply",
	"se repite":                                                "it is there twice",
	"%q está repetida":                                         "%q is there twice",
	"%q está repetido":                                         "%q is there twice",
	"línea %d, columna %d: %s":                                 "line %d, column %d: %s",
	"no es JSON válido":                                        "it is not valid JSON",
	"el nombre está repetido en su objeto":                     "the name is twice in its object",
	"sobra lo que sigue al objeto":                             "nothing may follow the object",
	"no es UTF-8 válido":                                       "it is not valid UTF-8",
	"debe ser un objeto":                                       "it must be an object",
	"solo vale en una compra":                                  "it is for a purchase alone",
	"debe tener exactamente uno de points, amount, max o hold": "it must have exactly one of points, amount, max or hold",
	"debe ser una lista":                                       "it must be a list",
	"debe ser un texto":                                        "it must be a text",
	"debe ser un número":                                       "it must be a number",
	"debe ser un número entero":                                "it must be a whole number",
	"es un número demasiado grande":                            "the number is too large",
	"debe tener 4 decimales como máximo":                       "it must have 4 decimals at most",
	"debe tener a lo sumo %d decimales":                        "it must have %d decimals at most",
	"no puede pasar de 2000 bytes":                             "it cannot be longer than 2000 bytes",
	"no puede pasar de %d":                                     "it cannot be more than %d",
	"no puede pasar de %s":                                     "it cannot be more than %s",
	"no puede haber más de %d":                                 "there cannot be more than %d",
	"no puede estar vacío":                                     "it cannot be empty",
	"debe tener de 1 a 100 caracteres, sin espacios al principio ni al final":                             "it must have 1 to 100 characters, without blanks at its ends",
	"debe tener de 1 a 100 caracteres":                                                                    "it must have 1 to 100 characters",
	"debe tener de 1 a 50 letras minúsculas, cifras, - o _, y empezar con una letra o cifra":              "it must have 1 to 50 small letters, digits, - or _, and begin with a letter or digit",
	"debe tener de 1 a 50 letras minúsculas, cifras y guiones":                                            "it must have 1 to 50 small letters, digits and hyphens",
	"debe ser una URL http o https":                                                                       "it must be an http or https URL",
	"debe ser una URL https, sin usuario ni fragmento; http solo hacia localhost o una dirección privada": "it must be an https URL without user or fragment; http is only for localhost or a private address",
	"debe ser un código de país de dos letras":                                                            "it must be a country's code of two letters",
	"debe ser un código de moneda de tres letras":                                                         "it must be a currency's code of three letters",
	"debe ser un color como #5B3A29":                                                                      "it must be a colour such as #5B3A29",
	"debe ser una zona horaria IANA":                                                                      "it must be an IANA time zone",
	"debe ser es o en, con o sin una región, como es-MX":                                                  "it must be es or en, with or without a region, such as es-MX",
	"debe ser una fecha ISO 8601":                                                                         "it must be a date, such as 2027-12-31",
	"debe ser una hora como 08:30":                                                                        "it must be a time such as 08:30",
	"debe ser una hora como 18:30, distinta de from":                                                      "it must be a time such as 18:30, and another one than from",
	"debe ser posterior a %s":                                                                             "it must be after %s",
	"debe estar entre 0 y %d, o null":                                                                     "it must be between 0 and %d, or null",
	"debe estar entre 0 y %d":                                                                             "it must be between 0 and %d",
	"debe estar entre 0 y 4":                                                                              "it must be between 0 and 4",
	"debe estar entre 1 y %d":                                                                             "it must be between 1 and %d",
	"debe ser mayor a 0, hasta 100":                                                                       "it must be above 0, up to 100",
	"debe ser mayor o igual a 0, o null":                                                                  "it must be 0 or more, or null",
	"debe ser mayor o igual a 1":                                                                          "it must be 1 or more",
	"debe ser mayor al del nivel anterior":                                                                "it must be above that of the tier before",
	"debe ser mayor a 0":                                                                                  "it must be above 0",
	"debe ser mayor a pendingDays":                                                                        "it must be above pendingDays",
	"debe ser menor a los %d días en que los puntos del programa pueden vencer":                           "it must be less than the %d days in which points of the program may expire",
	"debe tener days o months, mayor a 0, y no ambos":                                                     "it must have days or months, above 0, and not both",
	"debe tener exactamente un efecto: per, perItem, points o multiplier":                                 "it must have exactly one effect: per, perItem, points or multiplier",
	"debe tener exactamente uno de all, any, not o field":                                                 "it must have exactly one of all, any, not or field",
	"op y value van con field":                                                                            "op and value go with field",
	"solo va con fulfilment: Voucher":                                                                     "it only goes with fulfilment: Voucher",
	"solo va con type: %s":                                                                                "it only goes with type: %s",
	"solo va con window: Rolling":                                                                         "it only goes with window: Rolling",
	"solo lo cambia un propietario":                                                                       "only an owner changes it",
	"no se puede cambiar cuando ya hay clientes: los días de las estadísticas dependen de ella":           "it cannot change once there are customers: the days of the statistics depend on it",
	"una regla de %s da points":                                                                           "a %s rule gives points",
	"una regla de %s solo admite from y until como condiciones":                                           "a %s rule has no conditions but from and until",
	"hace falta al menos un programa":                                                                     "at least one program is needed",
	"hace falta al menos uno, como \"points.*\"":                                                          "at least one is needed, such as \"points.*\"",
	"exactamente uno debe tener default: true":                                                            "exactly one must have default: true",
	"es de otra organización":                                                                             "it is that of another organization",
	"no es ningún tipo de evento: %q":                                                                     "there is no type of event %q",
	"no hay ningún segmento %q":                                                                           "there is no segment %q",
	"no hay ningún nivel %q":                                                                              "there is no tier %q",
	"no hay ningún programa %q":                                                                           "there is no program %q",
	"debe ser %s":                                                                                         "it must be %s",
	"nunca dará puntos: %s":                                                                               "it will never give points: %s",
	"ningún cliente gana en este programa, que no es default ni tiene join: All":                          "no customer earns in this program, which is not the default and does not have join: All",
	"nadie se da de alta en este programa, que no es default ni tiene join: All":                          "nobody is enrolled in this program, which is not the default and does not have join: All",
	"until ya pasó":                                                                                       "its until is over",
	"sus segmentos están inactivos":                                                                       "its segments are inactive",
	"sus skus están en blanco o tienen caracteres de control":                                             "its skus are blank or have control characters",
	"entre from y until no caen sus days y hours":                                                         "its days and hours do not occur between from and until",
	"antes de la primera compra nadie está en sus niveles":                                                "before the first purchase nobody is in its tiers",
	"multiplica por 1":                                                                                    "it multiplies by 1",
	"multiplica lo que dan las reglas per, y no hay ninguna":                                              "it multiplies what per rules give, and there are none",
	"multiplica lo que dan las reglas per, y ninguna vale a la vez":                                       "it multiplies what per rules give, and none holds at the same time",
	"%q no excluye artículos: solo vale para los que empiezan así, con !":                                 "%q leaves no items out: it only matches those that begin so, with !",
	"con returns: Keep, quien devuelve su primera compra y compra otra vez vuelve a recibir los puntos":                          "with returns: Keep, whoever returns the first purchase and buys again gets the points again",
	"con más de un programa, add y deduct necesitan loyaltyProgramId: las cajas que no lo envíen recibirán 400 program_required": "with more than one program, add and deduct need loyaltyProgramId: tills that do not send it will get 400 program_required",
	"es requerido":                         "it is missing",
	"debe ser ERASE":                       "it must be ERASE",
	"debe ser otro cliente":                "it must be another customer",
	"debe ser mayor o igual a 0":           "it must be 0 or more",
	"debe ser un entero mayor o igual a 0": "it must be a whole number, 0 or more",
	"debe ser un entero entre %d y %d":     "it must be a whole number between %d and %d",
	"debe ser un tipo de evento, como points.added, o un grupo, como points.*": "it must be a type of event, such as points.added, or a group, such as points.*",
	"debe ser una fecha futura": "it must be a date in the future",
	"debe ser una fecha con el año de cuatro cifras, como 2026-11-30 o 30/11/2026 (con -dates mdy, 11/30/2026)": "it must be a date with a year of four digits, such as 2026-11-30 or 30/11/2026 (with -dates mdy, 11/30/2026)",
	"debe tener de 1 a %d elementos":                                          "it must have 1 to %d elements",
	"debe tener de 1 a 255 caracteres ASCII imprimibles":                      "it must have 1 to 255 printable ASCII characters",
	"debe tener como máximo 100 caracteres UTF-8, sin caracteres de control":  "it must have 100 UTF-8 characters at most, without control characters",
	"no puede superar los %d caracteres":                                      "it cannot be longer than %d characters",
	"no puede superar los %d elementos":                                       "it cannot have more than %d elements",
	"no puede superar los %d elementos, el límite de solicitudes de la clave": "it cannot have more than %d elements, the limit of the key's requests",
	"no puede ser posterior a to":                                             "it cannot be after to",
	"no puede ser posterior a to ni distar más de 100 años":                   "it cannot be after to, nor more than 100 years before it",
	"no puede ser una fecha futura":                                           "it cannot be a date in the future",
	"no puede ser anterior a 1970":                                            "it cannot be before 1970",
	"no puede ser menor a 0":                                                  "it cannot be below 0",
	"no puede repetirse":                                                      "it cannot be there twice",
	"se envió dos veces":                                                      "it was sent twice",
	"La consulta no es válida":                                                "The query is not valid",
	"ya se registró con otros datos":                                          "it was already registered with other data",
	"la venta no puede tener más de 500 artículos":                            "the sale cannot have more than 500 items",
	"el cliente ya tiene un saldo inicial de %s":                              "the customer already has an opening balance of %s",
	"el cliente ya tiene puntos históricos: %s":                               "the customer already has historic points: %s",
	"debe ser Month":                                                          "it must be Month",
}

// sentenceText is a sentence in the page's language.
func sentenceText(lang language, why sentence) string {
	format, is := sentenceTexts[why.format]
	if lang.code == "es" || !is {
		return why.String()
	}
	args := make([]any, len(why.args))
	for i, a := range why.args {
		switch a := a.(type) {
		case sentence:
			args[i] = sentenceText(lang, a)
		case anyOf:
			args[i] = listed(a, "or")
		default:
			args[i] = a
		}
	}
	return fmt.Sprintf(format, args...)
}
